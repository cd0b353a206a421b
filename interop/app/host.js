// A host of MCP Apps, on the extension's own AppBridge: a frame without rights of its own, and the calls it makes.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

window.open_view = async (html, input, theme) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.title = "view";
  frame.style.cssText = "width: 100%; height: 90vh; border: 0";
  document.body.replaceChildren(frame);
  const bridge = new AppBridge(
    null,
    { name: "test host", version: "1" },
    { serverTools: {}, openLinks: {}, updateModelContext: { text: {} }, downloadFile: {} },
    { hostContext: { theme } },
  );
  window.seen = { calls: [], links: [], contexts: [], files: [] };
  bridge.oncalltool = async (params) => {
    window.seen.calls.push(params);
    return window.call_tool(params);
  };
  bridge.onopenlink = async ({ url }) => { window.seen.links.push(url); return {}; };
  bridge.ondownloadfile = async (params) => { window.seen.files.push(params); return {}; };
  bridge.onupdatemodelcontext = async (params) => { window.seen.contexts.push(params); return {}; };
  const ready = new Promise((resolve) => { bridge.oninitialized = resolve; });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html;
  await ready;
  await bridge.sendToolInput({ arguments: input });
  window.bridge = bridge;
};
window.tool_result = (result) => window.bridge.sendToolResult(result);

"use strict";
// The view's side of MCP Apps: JSON-RPC with the host by postMessage. It learns which job it shows from the tool's call
// and asks after it with the tool `show_job`, which no model sees.
const host = window.parent;
const waiting = new Map();
let lastId = 0;
let shown = null;
let asked = {};
let timer = 0;
let canAsk = false;
let polls = 0;
let told = false;
let closed = false;

const part = (id) => document.getElementById(id);
const post = (message) => host.postMessage({ jsonrpc: "2.0", ...message }, "*");
const notify = (method, params) => post({ method, params });
function request(method, params) {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    post({ id, method, params });
  });
}

function show(id, isShown) { part(id).hidden = !isShown; }
function text(id, value) { part(id).textContent = value; show(id, Boolean(value)); }

function draw(job) {
  shown = job;
  text("title", job.title);
  text("state", job.message);
  const bar = part("bar");
  show("bar", !job.done && job.percent !== undefined);
  if (job.percent !== undefined) {
    bar.setAttribute("aria-valuenow", job.percent);
    bar.firstElementChild.style.width = job.percent + "%";
  }
  text("facts", [job.provider, job.model, job.elapsed, job.cost && "cost " + job.cost].filter(Boolean).join(" · "));
  text("partial", job.done ? "" : job.partial || "");
  text("error", job.error ? job.error.code + ": " : "");
  // Commands are between backticks.
  (job.error ? job.error.message.split("`") : []).forEach((piece, index, all) => {
    const isCode = index % 2 && index < all.length - 1;
    const node = isCode ? document.createElement("code") : document.createTextNode(index % 2 && !isCode ? "`" + piece : piece);
    if (isCode) node.textContent = piece;
    part("error").append(node);
  });
  show("report", Boolean(job.report));
  if (job.report && part("report").dataset.of !== job.jobId) {
    // Made by the server's own renderer, which lets no tag of a report through.
    part("report").innerHTML = job.report;
    part("report").dataset.of = job.jobId;
  }
  show("save", Boolean(job.report && job.markdown));
  show("open", Boolean(job.page));
  show("actions", Boolean((job.report && job.markdown) || job.page));
}

async function look() {
  clearTimeout(timer);
  if (closed || !canAsk || !(asked.id || asked.query)) return;
  let wait = polls++ < 60 ? 2000 : 5000;
  try {
    const answer = await request("tools/call", { name: "show_job", arguments: asked });
    const job = answer.structuredContent;
    if (job && job.found) {
      asked = { id: job.jobId };
      const wasUnfinished = shown && !shown.done;
      draw(job);
      if (job.done) {
        if (wasUnfinished) tell(job);
        return;
      }
    }
  } catch (error) {
    text("state", "The server does not answer: " + error.message + ". Asking again.");
    wait = 5000;
  }
  timer = setTimeout(look, wait);
}

// So that the model knows of the end when it speaks next; it asks nothing for that.
function tell(job) {
  if (told) return;
  told = true;
  const words = job.report ? "has its result, which is shown to the user" : "has ended: " + job.message;
  request("ui/update-model-context", {
    content: [{ type: "text", text: `The job ${job.jobId} ${words}.` }],
  }).catch(() => {});
}

function follow(found) {
  if (!found || !(found.id || found.query)) return;
  if (asked.id && !found.id) return;
  if (asked.id === found.id && shown && shown.done) return;
  asked = found;
  polls = 0;
  look();
}

function context(given) {
  if (given && given.theme) document.documentElement.dataset.theme = given.theme;
}

const handlers = {
  "ui/notifications/tool-input": ({ arguments: given = {} }) => {
    const id = given.jobId || given.job_id;
    if (id) follow({ id });
    else if (given.query || given.message) {
      text("title", given.query || given.message);
      follow({ query: given.query || given.message });
    }
  },
  "ui/notifications/tool-result": (result) => {
    const shape = result.structuredContent || {};
    const meta = result._meta || {};
    const id = meta["outlast/jobId"] || shape.jobId || shape.job_id || shape.conversationId;
    if (id) follow({ id });
    else if (!shown) {
      const said = (result.content || []).filter((block) => block.type === "text").map((block) => block.text);
      text(result.isError ? "error" : "state", said.join("\n"));
    }
  },
  "ui/notifications/tool-cancelled": () => {
    if (!shown) text("state", "The call was cancelled; its job goes on where one was started.");
  },
  "ui/notifications/host-context-changed": context,
};

window.addEventListener("message", (event) => {
  const message = event.data;
  if (event.source !== host || !message || message.jsonrpc !== "2.0") return;
  if (message.method && message.id !== undefined) {
    if (message.method === "ui/resource-teardown") { closed = true; clearTimeout(timer); }
    post({ id: message.id, result: {} });
  } else if (message.method) {
    const handler = handlers[message.method];
    if (handler) handler(message.params || {});
  } else {
    const open = waiting.get(message.id);
    waiting.delete(message.id);
    if (open && message.error) open.reject(new Error(message.error.message));
    else if (open) open.resolve(message.result || {});
  }
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link) return;
  event.preventDefault();
  const href = link.getAttribute("href");
  if (href.startsWith("#")) {
    const target = part(href.slice(1));
    if (target) target.scrollIntoView();
  } else {
    request("ui/open-link", { url: href }).catch(() => {});
  }
});
part("open").addEventListener("click", () => request("ui/open-link", { url: shown.page }).catch(() => {}));
part("save").addEventListener("click", () => {
  const resource = { uri: "file:///report.md", mimeType: "text/markdown", text: shown.markdown };
  request("ui/download-file", { contents: [{ type: "resource", resource }] }).catch(() => {});
});
new ResizeObserver(() => {
  const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
  notify("ui/notifications/size-changed", { height });
}).observe(document.documentElement);

request("ui/initialize", {
  appInfo: { name: "outlast", version: "1" },
  appCapabilities: {},
  protocolVersion: "2026-01-26",
}).then((answer) => {
  canAsk = Boolean(answer.hostCapabilities && answer.hostCapabilities.serverTools);
  context(answer.hostContext);
  notify("ui/notifications/initialized", {});
  if (canAsk) look();
}).catch((error) => text("error", "The host did not answer: " + error.message));

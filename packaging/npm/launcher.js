#!/usr/bin/env node
// Starts the program of this platform's package. Without arguments and without a terminal it serves MCP.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

function program() {
  const { platform, arch } = process;
  const isMusl = platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  const name = `outlast-mcp-${platform}-${arch}${isMusl ? "-musl" : ""}`;
  try {
    return require.resolve(`${name}/bin/outlast`);
  } catch {
    console.error(`error: the package ${name} is missing\n`);
    console.error(
      "hint: install outlast-mcp again without --omit=optional; if there is no such package, build outlast from its source",
    );
    process.exit(1);
  }
}

const given = process.argv.slice(2);
const argv = given.length === 0 && !process.stdin.isTTY ? ["serve"] : given;
const child = spawn(program(), argv, { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));

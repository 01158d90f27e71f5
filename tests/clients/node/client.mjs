// The TypeScript SDK (`@modelcontextprotocol/sdk` 1.x) and the inspector, through `termgate mcp` and
// `termgate serve --stdio`. It knows no Rust; what holds is printed line by line, and counted last.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const BIN = process.env.TERMGATE_BIN;
const LOOK_MS = 20;
const PATIENCE_MS = 20_000;

let passed = 0;
let failed = 0;

function that(sentence, holds, seen) {
  if (holds) {
    passed += 1;
    console.log(`ok   node: ${sentence}`);
  } else {
    failed += 1;
    console.log(`FAIL node: ${sentence}; seen: ${JSON.stringify(seen)}`);
  }
}

/** A home with nothing in it, and what programs are told of it. */
function home() {
  const root = mkdtempSync(join(tmpdir(), "tg-"));
  const run = join(root, "run");
  mkdirSync(run, { mode: 0o700 });
  const env = {
    PATH: process.env.PATH,
    HOME: root,
    XDG_RUNTIME_DIR: run,
    XDG_STATE_HOME: join(root, "state"),
    XDG_CONFIG_HOME: join(root, "config"),
  };
  // Where daemons are: that of `env`, and that of whoever is told HOME and PATH alone.
  const lock = join(run, "termgate", "daemon.lock");
  const locks = [lock, join(root, ".local", "state", "termgate", "run", "daemon.lock")];
  return { root, env, lock, locks };
}

async function connect(place, ...words) {
  const transport = new StdioClientTransport({ command: BIN, args: words, env: place.env, stderr: "ignore" });
  const client = new Client({ name: "node-client", version: "1" });
  await client.connect(transport);
  return client;
}

async function call(client, name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  return { failed: result.isError === true, data: result.structuredContent ?? {} };
}

async function until(what, holds) {
  for (let waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
    if (holds()) return true;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  console.log(`waited in vain for ${what}`);
  return false;
}

function lives(pid) {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).startsWith("Z");
  } catch {
    return false;
  }
}

async function aSessionIsUsed(client, way) {
  const created = await call(client, "create_session", { command: "bash", args: ["--norc", "--noprofile"] });
  that(`${way}: a session is created`, !created.failed, created.data);
  const session = created.data.session?.id;
  const typed = await call(client, "send_text", {
    session,
    text: "echo sum=$((6*7))",
    enter: true,
    until: { pattern: "sum=42" },
    wait_ms: PATIENCE_MS,
  });
  that(`${way}: typing waits for what comes of it`, typed.data.wait?.outcome === "matched", typed.data);
  return session;
}

async function commandsAreRun(client, way) {
  const created = await call(client, "create_session", { command: "bash", args: [] });
  const session = created.data.session?.id;
  for (const [command, output, code] of [["echo one; (exit 3)", "one", 3], ["echo two", "two", 0]]) {
    const { data } = await call(client, "run", { session, command });
    const told = data.status === "completed" && data.output === output && data.exit_code === code;
    that(`${way}: \`${command}\` has its own output and code`, told, data);
  }
  const { data } = await call(client, "run", { session, command: "read -p 'Name: ' name" });
  that(`${way}: a command that asks ends the call`, data.status === "needs_input", data);
  const { prompts } = await client.listPrompts();
  const prompt = await client.getPrompt({ name: "fix_error", arguments: { command: "make all" } });
  that(`${way}: prompts are listed`, prompts.some(({ name }) => name === "core"), prompts);
  that(`${way}: a prompt has what it was given`, JSON.stringify(prompt).includes("make all"), prompt);
  for (let time = 0; time < 2; time++) await call(client, "manage_session", { session, action: "kill" });
}

async function throughTheBridge(place) {
  const client = await connect(place, "mcp", "--allow-write");
  const { tools } = await client.listTools();
  that("bridge: tools are listed", tools.some((tool) => tool.name === "send_text"), tools.length);
  await commandsAreRun(client, "bridge");
  const session = await aSessionIsUsed(client, "bridge");

  const updated = [];
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updated.push(params.uri));
  const uri = `termgate://session/${session}/grid`;
  await client.subscribeResource({ uri });
  await call(client, "send_text", { session, text: "pushed" });
  that("bridge: a change is pushed", await until("an update", () => updated.includes(uri)), updated);

  const observer = await connect(place, "mcp", "--session", session, "--read-only");
  const refused = await call(observer, "send_text", { text: "x" });
  that("bridge: an observer never writes", refused.data.error_code === "read_only", refused.data);
  await observer.close();

  const pid = Number(readFileSync(place.lock, "utf8"));
  const lost = call(client, "wait_for", { session, pattern: "never" }).then(
    () => undefined,
    (error) => error,
  );
  await call(client, "list_sessions");
  process.kill(pid, "SIGKILL");
  const error = await lost;
  that("bridge: a call in flight is answered", error?.data?.error_code === "upstream_restarted", error);
  // The next daemon may still be reading what the program wrote last.
  await call(client, "wait_for", { session, pattern: "pushed", since: 0 });
  const again = await call(client, "list_sessions");
  const kept = again.data.sessions?.map((kept) => [kept.id, kept.state, kept.last_line.endsWith("pushed")]);
  const expected = [[session, "running", true]];
  that("bridge: the session outlives the daemon", JSON.stringify(kept) === JSON.stringify(expected), again.data);
  // Once to end its program, and once to forget it.
  for (let time = 0; time < 2; time++) execFileSync(BIN, ["kill", session], { env: place.env });
  const next = Number(readFileSync(place.lock, "utf8"));
  await client.close();
  that("bridge: the daemon ends with it", await until("the end", () => !lives(next)), next);
}

async function overStdio(place) {
  const client = await connect(place, "serve", "--stdio", "--allow-write");
  const session = await aSessionIsUsed(client, "stdio");
  const listed = await call(client, "list_sessions", { session });
  const pid = listed.data.sessions?.[0]?.pid;
  await client.close();
  that("stdio: its programs end with it", await until("the end", () => !lives(pid)), pid);
}

function inspect(place, ...words) {
  const inspector = join("node_modules", ".bin", "mcp-inspector");
  const output = execFileSync(inspector, ["--cli", BIN, ...words], {
    env: place.env,
    timeout: 60_000,
    stdio: ["ignore", "pipe", "ignore"],
  });
  return JSON.parse(output);
}

function withTheInspector(place) {
  // It hands on no more than HOME and PATH; the rest then follows from HOME.
  const alone = { ...place, env: { PATH: place.env.PATH, HOME: place.env.HOME } };
  const { tools } = inspect(alone, "mcp", "--method", "tools/list");
  that("inspector: tools are listed", tools.some((tool) => tool.name === "read_screen"), tools.length);
  const said = inspect(alone, "mcp", "--method", "tools/call", "--tool-name", "list_sessions");
  that("inspector: a tool is called", said.structuredContent?.sessions?.length === 0, said);
}

const place = home();
try {
  await throughTheBridge(place);
  await overStdio(place);
  withTheInspector(place);
} catch (error) {
  that("the story is told to its end", false, String(error));
} finally {
  for (const lock of place.locks.filter((path) => existsSync(path))) {
    const pid = Number(readFileSync(lock, "utf8"));
    if (lives(pid)) process.kill(pid, "SIGTERM");
    await until("the end of the daemon", () => !lives(pid));
  }
  rmSync(place.root, { recursive: true, force: true });
}
console.log(`node: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

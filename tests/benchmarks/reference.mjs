// Line-by-line reference of the pinned rules for Claude Code and Codex, written from their text
// (formats/claude-code.md and formats/codex.md, section 3; pinned-importer.md, section 4).
//
//   node reference.mjs claude-code|codex <folder>     prints {"ms", "files": [{id, hash, messages}]}

import { createHash, randomUUID } from "node:crypto";
import { createReadStream, mkdtempSync, readdirSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";

const FENCE = "```";

async function eachRecord(path, visit) {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  for await (const line of lines) {
    if (!line.trim()) continue;
    let record;
    try {
      record = JSON.parse(line);
    } catch {
      continue;
    }
    visit(record);
  }
}

function byTime(messages) {
  return messages.sort((a, b) => new Date(a.timestamp).getTime() - new Date(b.timestamp).getTime());
}

const now = () => new Date().toISOString();

// ---- Claude Code ----

const CLEANERS = [
  /<system-reminder>[\s\S]*?<\/system-reminder>/g,
  /<command-name>[^<]*<\/command-name>/g,
  /<command-message>[^<]*<\/command-message>/g,
  /<command-args>[^<]*<\/command-args>/g,
  /<local-command-stdout>[^<]*<\/local-command-stdout>/g,
  /<local-command-caveat>[\s\S]*?<\/local-command-caveat>/g,
];

function sanitize(text) {
  for (const pattern of CLEANERS) text = text.replace(pattern, "");
  return text.trim();
}

function readContent(content) {
  if (!content) return { content: "", thinking: null, hasToolUse: false, hasCode: false };
  if (typeof content === "string") {
    const text = sanitize(content);
    return { content: text, thinking: null, hasToolUse: false, hasCode: text.includes(FENCE) };
  }
  const texts = [];
  const thoughts = [];
  let hasToolUse = false;
  let hasCode = false;
  for (const block of content) {
    if (block.type === "text" && block.text) {
      texts.push(block.text);
      if (block.text.includes(FENCE)) hasCode = true;
    } else if (block.type === "thinking" && block.thinking) {
      thoughts.push(block.thinking);
    } else if (block.type === "tool_use") {
      hasToolUse = true;
    }
  }
  const thinking = thoughts.length ? thoughts.join("\n") : null;
  return { content: sanitize(texts.join("\n")), thinking, hasToolUse, hasCode };
}

function claudeProject(folder) {
  const parts = folder.split("-").filter(Boolean);
  const at = parts.findIndex((part) => /^projects?$/i.test(part));
  if (at >= 0 && at < parts.length - 1) return parts.slice(at + 1).join("-");
  return parts.length >= 2 ? parts.slice(-2).join("-") : folder;
}

async function parseClaude({ id, path, projectDir }) {
  const messages = [];
  let slug = null;
  let cwd = null;
  let gitBranch = null;
  await eachRecord(path, (line) => {
    if (!line.uuid || (line.type !== "user" && line.type !== "assistant")) return;
    cwd ||= line.cwd || null;
    gitBranch ||= line.gitBranch || null;
    slug ||= line.slug || null;
    const read = readContent(line.message?.content);
    if (!read.content && !read.thinking && !read.hasToolUse) return;
    messages.push({
      id: line.uuid,
      parentUuid: line.parentUuid ?? null,
      type: line.type,
      role: line.message?.role ?? line.type,
      ...read,
      timestamp: line.timestamp ?? now(),
    });
  });
  return finish({ id, slug, source: "claude-code", projectDir, projectName: claudeProject(projectDir), cwd, gitBranch }, messages);
}

function scanClaude(root) {
  const found = [];
  for (const projectDir of readdirSync(root)) {
    if (!statSync(join(root, projectDir)).isDirectory()) continue;
    for (const name of readdirSync(join(root, projectDir))) {
      const path = join(root, projectDir, name);
      if (name.endsWith(".jsonl")) found.push({ id: name.slice(0, -6), path, projectDir, ...sizeAndTime(path) });
    }
  }
  return found.filter((candidate) => candidate.fileSize >= 100);
}

// ---- Codex ----

const REQUEST = "## My request for Codex:\n";
const NAME = /rollout-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-(.+)/;

function userText(message) {
  let text = message || "";
  const at = text.indexOf(REQUEST);
  if (at >= 0) text = text.slice(at + REQUEST.length);
  return text.trim();
}

function itemText(content) {
  const texts = [];
  for (const block of content || []) {
    if (block.type === "output_text" && block.text) texts.push(block.text);
  }
  return texts.join("\n").trim();
}

async function parseCodex({ id, path, projectDir }) {
  const messages = [];
  const meta = { id, cwd: null, gitBranch: null };
  let last = null;

  const add = (role, content, timestamp) => {
    const hasCode = content.includes(FENCE);
    const message = { id: randomUUID(), parentUuid: null, type: role, role, content, hasToolUse: false, hasCode, thinking: null, timestamp };
    messages.push(message);
    return message;
  };

  await eachRecord(path, (line) => {
    const timestamp = line.timestamp || now();
    const payload = line.payload;
    if (!payload) return;
    if (line.type === "session_meta") {
      meta.id = payload.id || meta.id;
      meta.cwd = payload.cwd || meta.cwd;
      meta.gitBranch = payload.git?.branch || meta.gitBranch;
    } else if (line.type === "event_msg" && payload.type === "user_message") {
      const text = userText(payload.message);
      if (text) add("user", text, timestamp);
    } else if (line.type === "event_msg" && payload.type === "agent_message") {
      const text = payload.message || "";
      if (text.trim()) last = add("assistant", text, timestamp);
    } else if (line.type === "response_item" && payload.type === "message" && payload.role === "assistant") {
      const text = itemText(payload.content);
      if (text && last?.content !== text) last = add("assistant", text, timestamp);
    } else if (line.type === "response_item" && (payload.type === "function_call" || payload.type === "custom_tool_call")) {
      if (last) last.hasToolUse = true;
    }
  });
  const project = projectDir || meta.cwd || "";
  const projectName = project.replaceAll("\\", "/").split("/").filter(Boolean).at(-1) ?? project;
  return finish({ ...meta, slug: null, source: "codex", projectDir: project, projectName }, messages);
}

function* walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else if (entry.name.startsWith("rollout-") && entry.name.endsWith(".jsonl")) yield path;
  }
}

function scanCodex(root) {
  const found = [];
  for (const path of walk(root)) {
    const name = basename(path, ".jsonl");
    found.push({ id: NAME.exec(name)?.[1] ?? name, path, projectDir: "", ...sizeAndTime(path) });
  }
  return found.filter((candidate) => candidate.fileSize >= 50);
}

// ---- both ----

function sizeAndTime(path) {
  const { size, mtime } = statSync(path);
  return { fileSize: size, fileMtime: mtime.toISOString() };
}

function finish(conversation, messages) {
  byTime(messages);
  return {
    ...conversation,
    messages,
    firstMessageAt: messages[0]?.timestamp ?? now(),
    lastMessageAt: messages.at(-1)?.timestamp ?? now(),
  };
}

function contentHash({ source, messages }) {
  const hashed = messages.map(({ type, role, content, hasToolUse, hasCode, thinking }, index) => ({
    index,
    type,
    role,
    content,
    hasToolUse,
    hasCode,
    thinking,
  }));
  return createHash("sha256").update(JSON.stringify({ source, messages: hashed })).digest("hex");
}

const ADAPTERS = {
  "claude-code": { scan: scanClaude, parse: parseClaude },
  codex: { scan: scanCodex, parse: parseCodex },
};

const [source, root] = process.argv.slice(2);
const { scan, parse } = ADAPTERS[source];

async function work(root) {
  const files = [];
  for (const candidate of scan(root)) {
    const conversation = await parse(candidate);
    files.push({ id: conversation.id, hash: contentHash(conversation), messages: conversation.messages.length });
  }
  return files;
}

const empty = mkdtempSync(join(tmpdir(), "reference-")); // what costs the same however much there is to read: start-up
await work(empty);
rmdirSync(empty);
const start = performance.now();
const files = await work(root);
const ms = performance.now() - start;
console.log(JSON.stringify({ ms, files }));

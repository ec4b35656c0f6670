// Answers questions about JavaScript, one JSON line each: {"ask": name, "value": …} -> {"answer": …}
import { createInterface } from "node:readline";
import { Readable } from "node:stream";

const CLEANERS = [
  /<system-reminder>[\s\S]*?<\/system-reminder>/g,
  /<command-name>[^<]*<\/command-name>/g,
  /<command-message>[^<]*<\/command-message>/g,
  /<command-args>[^<]*<\/command-args>/g,
  /<local-command-stdout>[^<]*<\/local-command-stdout>/g,
  /<local-command-caveat>[\s\S]*?<\/local-command-caveat>/g,
];

async function readLines(base64) {
  const lines = [];
  const input = Readable.from([Buffer.from(base64, "base64")]);
  for await (const line of createInterface({ input, crlfDelay: Infinity })) lines.push(line);
  return lines;
}

const answers = {
  version: () => Number(process.versions.node.split(".")[0]),
  stringify: (value) => JSON.stringify(value),
  parse: (text) => {
    try {
      return { ok: JSON.stringify(JSON.parse(text)) };
    } catch {
      return { error: true };
    }
  },
  trim: (text) => text.trim(),
  text: (value) => String(value),
  join: (values) => values.join("\n"),
  date: (value) => new Date(value).getTime(),
  order: (values) =>
    values.map((value, index) => [value, index]).sort((a, b) => new Date(a[0]) - new Date(b[0])).map((pair) => pair[1]),
  decode: (text) => {
    try {
      return { ok: decodeURIComponent(text) };
    } catch {
      return { error: true };
    }
  },
  lines: readLines,
  clean: (text) => CLEANERS.reduce((rest, pattern) => rest.replace(pattern, ""), text).trim(),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { ask, value } = JSON.parse(line);
  process.stdout.write(JSON.stringify({ answer: await answers[ask](value) }) + "\n");
}

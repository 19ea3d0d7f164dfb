// A page that shows the device's memory and its settings, and changes them: docs/apps.md.

import { Weir } from "./weir.js";

const REFRESH_MS = 5000;

const element = (id) => document.getElementById(id);

// The page's own server says where the gateway is, and gets the tickets: it has the token.
const { url, peer } = await (await fetch("gateway")).json();
const weir = new Weir(url, peer, { ticket });

async function ticket() {
  const answer = await fetch("ticket", { method: "POST" });
  const { ticket, error } = await answer.json();
  if (!answer.ok) throw new Error(error?.message ?? `no ticket: ${answer.status}`);
  return ticket;
}

// The connection.

weir.on("open", () => showState("connected"));
weir.on("close", ({ reason, retryInMs }) => {
  showState(`${reason || "no connection"}, again in ${Math.ceil(retryInMs / 1000)} s`);
});

function showState(text) {
  element("state").textContent = text;
  element("state").dataset.state = weir.state;
}

// Memory: a question every few seconds, while anybody sees the answer.

async function showMemory() {
  if (document.visibilityState !== "visible" || weir.state !== "open") return;
  try {
    const { total_kib, available_kib } = await weir.call("device.info@1/memory", undefined, { timeoutMs: REFRESH_MS });
    element("used").textContent = `${mib(total_kib - available_kib)} of ${mib(total_kib)} MiB used`;
    Object.assign(element("meter"), { max: total_kib, high: total_kib * 0.9, value: total_kib - available_kib });
    element("memory").textContent = `As of ${new Date().toLocaleTimeString()}.`;
  } catch (error) {
    element("memory").textContent = error.message;
  }
}

const mib = (kib) => Math.round(kib / 1024).toLocaleString();

weir.on("open", showMemory);
document.addEventListener("visibilitychange", showMemory);
setInterval(showMemory, REFRESH_MS);

// Settings: all of them once, and then their changes.

let settings = new Map();
let reading = null; // Changes that come while all are being read: they are newer than the answer may be.

async function readSettings() {
  const meanwhile = (reading = []);
  try {
    const all = await weir.call("settings@1/list");
    if (reading !== meanwhile) return; // A later reading has begun.
    settings = new Map(Object.entries(all.settings));
    meanwhile.forEach(change);
    reading = null;
    showSettings();
  } catch (error) {
    showAnswer(error.message, "bad");
  }
}

function change({ key, value }) {
  const type = settings.get(key)?.type ?? (Number.isInteger(value) ? "integer" : typeof value);
  settings.set(key, { value, type: type === "boolean" ? "bool" : type });
}

function showSettings(changed) {
  const rows = [...settings].sort().map(([key, { value, type }]) => {
    const row = document.createElement("tr");
    row.className = key === changed ? "new" : "";
    // As text, never as HTML: a setting is a stranger's.
    row.append(...[key, JSON.stringify(value), type].map((text) => {
      const cell = document.createElement("td");
      cell.textContent = text;
      return cell;
    }));
    return row;
  });
  element("settings").replaceChildren(...rows);
}

element("set").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { key, value } = Object.fromEntries(new FormData(event.target));
  try {
    await weir.call("settings@1/set", { key, value: parsed(value) }, { timeoutMs: 5000 });
    showAnswer(`${key} is set.`);
  } catch (error) {
    showAnswer(`${error.code}: ${error.message}`, "bad");
  }
});

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function showAnswer(text, kind = "") {
  Object.assign(element("answer"), { textContent: text, className: kind });
}

const onChange = ({ payload }) => {
  reading?.push(payload);
  change(payload);
  showSettings(payload.key);
};

// Nobody knows what happened during a gap, so all are read again.
const onGap = ({ topic, lost }) => {
  element("gap").textContent = topic
    ? `${lost} changes of ${topic} were missed while the connection was gone.`
    : "The connection was gone for a while: all settings were read again.";
  if (!topic) readSettings();
};

try {
  await weir.subscribe("settings.changed.>", onChange, { onGap, onLost: readSettings });
  await readSettings();
} catch (error) {
  showAnswer(error.message, "bad");
}

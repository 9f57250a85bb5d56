// The page: one event stream keeps the board; choosing a task opens its own. Text is only ever set as text.
"use strict";

const WORDS = {
  en: { fleet: "Fleet", queue: "Tasks", device: "device", node: "node", memory: "memory in use", busy: "busy",
    heldBy: "held by", task: "task", name: "name", state: "state", predicted: "predicted", measured: "measured",
    owner: "owner", cancel: "Cancel", output: "Output", simulated: "simulated", live: " live", off: " no connection",
    counts: (d, t, q) => `${d} devices · ${t} running · ${q} waiting`, booked: "booked", of: "of", cordoned: "cordoned",
    unhealthy: "unhealthy", other: "中文" },
  zh: { fleet: "设备", queue: "任务", device: "设备", node: "节点", memory: "显存使用", busy: "利用率", heldBy: "占用任务",
    task: "任务", name: "名称", state: "状态", predicted: "预测", measured: "实测", owner: "用户", cancel: "取消",
    output: "输出", simulated: "模拟", live: " 实时", off: " 连接断开",
    counts: (d, t, q) => `${d} 个设备 · ${t} 个运行中 · ${q} 个等待`, booked: "已预留", of: "/", cordoned: "已隔离",
    unhealthy: "异常", other: "English" },
};
let words = WORDS[localStorage.language || (navigator.language.startsWith("zh") ? "zh" : "en")];
const board = { tasks: {}, devices: {}, leases: {}, samples: {} };
let chosen = null, streams = [], pending = false, connected = false;

const $ = (id) => document.getElementById(id);
function make(tag, text, cls) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (cls) element.className = cls;
  return element;
}
function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return `${bytes.toFixed(unit && bytes < 100 ? 1 : 0)} ${units[unit]}`;
}

function row(cells, cls) {
  const tr = make("tr", null, cls);
  for (const cell of cells) {
    const td = make("td");
    td.append(cell instanceof Node ? cell : document.createTextNode(cell ?? ""));
    tr.append(td);
  }
  return tr;
}
function bar(used, booked, total) {
  const box = make("div", null, "bar");
  const fill = make("i"), mark = make("i", null, "booked");
  fill.style.width = `${Math.min(100, 100 * (used || 0) / total)}%`;
  mark.style.width = `${Math.min(100, 100 * booked / total)}%`;
  box.append(fill, mark, make("span", `${size(used)} ${words.of} ${size(total)}`));
  box.title = `${words.booked}: ${size(booked)}`;
  return box;
}

function drawFleet() {
  const devices = Object.values(board.devices).sort((a, b) => (a.node + a.kind + a.uid).localeCompare(b.node + b.kind + b.uid));
  $("fleet").tBodies[0].replaceChildren(...devices.map((d) => {
    const sample = board.samples[d.uid] || {}, held = board.leases[d.uid] || [];
    const used = sample.used_bytes ?? d.used_bytes;
    const busy = sample.utilization_ratio ?? d.utilization_ratio;
    const notes = make("span");
    if (d.simulated) notes.append(make("span", words.simulated, "tag"));
    if (!d.healthy) notes.append(make("span", d.health_reason || words.unhealthy, "bad"));
    if (d.cordoned) notes.append(make("span", words.cordoned, "bad"));
    return row([d.kind, d.node, bar(used, held.reduce((sum, lease) => sum + lease.bytes, 0), d.memory_bytes),
      busy === null || busy === undefined ? "–" : `${Math.round(busy * 100)} %`, held.map((l) => l.task_id).join(", "), notes]);
  }));
}
function drawTasks() {
  const tasks = Object.values(board.tasks).sort((a, b) => (b.submitted_at || "").localeCompare(a.submitted_at || ""));
  $("tasks").tBodies[0].replaceChildren(...tasks.map((t) => {
    const outcome = t.outcome && t.outcome !== "ok" ? ` (${t.outcome})` : "";
    const tr = row([t.task_id, t.name, make("span", t.state + outcome, t.state), t.device_kind, size(t.predicted_bytes),
      size(t.measured_bytes), t.owner, t.simulated ? make("span", words.simulated, "tag") : ""], t.task_id === chosen ? "chosen" : "");
    tr.addEventListener("click", () => choose(t.task_id));
    return tr;
  }));
  const count = (...states) => tasks.filter((t) => states.includes(t.state)).length;
  $("counts").textContent = words.counts(Object.keys(board.devices).length, count("running", "launching"),
    count("submitted", "profiled", "queued", "placed"));
  const task = board.tasks[chosen];
  $("cancel").hidden = !task || ["succeeded", "failed", "cancelled", "rejected"].includes(task.state);
}
function draw() {
  pending = false;
  drawFleet();
  drawTasks();
}
function redraw() {
  if (!pending) { pending = true; requestAnimationFrame(draw); }
}

const CASES = {
  snapshot: (p) => Object.assign(board, { tasks: p.tasks, devices: p.devices, leases: p.leases, samples: p.samples }),
  task: (p) => put(board.tasks, p), device: (p) => put(board.devices, p), lease: (p) => put(board.leases, p),
  sample: (p) => Object.assign(board.samples, p.value),
};
function put(table, patch) {
  if (patch.value === null) delete table[patch.key]; else table[patch.key] = patch.value;
}
function follow(path, onItem, onState) {
  const source = new EventSource(path);
  source.onmessage = (message) => onItem(JSON.parse(message.data));
  if (onState) { source.onopen = () => onState(true); source.onerror = () => onState(false); }
  return source;
}

function sentences(event) {
  const lines = [];
  const portrait = event.portrait;
  if (event.event === "profiled" && portrait) {
    const peak = portrait.memory.peak;
    lines.push(`${portrait.framework || "?"} · ${portrait.method} · ${Math.round(portrait.confidence * 100)} %`);
    lines.push(`${portrait.parameters.total?.toLocaleString() ?? "?"} parameters · batch ${portrait.batch.size_per_device ?? "?"} · ${portrait.optimizer || "?"} · ${portrait.precision || "?"}`);
    lines.push(`device ${size(peak.device_bytes)} (${size(peak.low_bytes)}–${size(peak.high_bytes)}), reserve ${size(peak.reserve_bytes)}`);
  }
  if (event.devices) for (const d of event.devices) lines.push(`${d.kind} · ${d.node} · ${size(d.reserved_bytes)}`);
  for (const c of (event.candidates || []).slice(0, 5)) lines.push(`${c.kind} · ${c.node}: ${c.score.toFixed(3)}`);
  for (const r of event.reasons || event.rejected || []) lines.push(`${r.kind || ""} ×${r.devices}: ${r.message}`);
  for (const text of event.would_free || []) lines.push(text);
  for (const f of event.faults || []) lines.push(`${f.path}: ${f.message}`);
  for (const a of event.advice || []) lines.push(words === WORDS.zh ? a.text_zh : a.text);
  if (event.docker_command) lines.push(event.docker_command);
  if (event.message) lines.push(words === WORDS.zh && event.message_zh ? event.message_zh : event.message);
  if (event.outcome) lines.push(`${event.outcome}${event.exit_code === null ? "" : ` (${event.exit_code})`}`);
  return lines;
}
function choose(id) {
  chosen = id;
  for (const stream of streams) stream.close();
  $("detail").hidden = false;
  $("detail-title").textContent = id;
  $("events").replaceChildren();
  $("logs").replaceChildren();
  streams = [
    follow(`/api/tasks/${encodeURIComponent(id)}/events`, (event) => {
      const item = make("li"), list = make("ul");
      item.append(make("b", event.event));
      if (event.simulated) item.append(" ", make("span", words.simulated, "tag"));
      for (const line of sentences(event)) list.append(make("li", line));
      item.append(list);
      $("events").append(item);
    }),
    follow(`/api/tasks/${encodeURIComponent(id)}/logs`, (line) => {
      const logs = $("logs");
      logs.append(`${line.line}\n`);
      while (logs.childNodes.length > 2000) logs.firstChild.remove();
      logs.scrollTop = logs.scrollHeight;
    }),
  ];
  redraw();
}

function showConnection() {
  $("live").className = connected ? "on" : "off";
  $("live").textContent = connected ? words.live : words.off;
}
function translate() {
  document.documentElement.lang = words === WORDS.zh ? "zh" : "en";
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = words[element.dataset.text];
  $("language").textContent = words.other;
  showConnection();
  redraw();
}
$("language").addEventListener("click", () => {
  localStorage.language = words === WORDS.zh ? "en" : "zh";
  words = WORDS[localStorage.language];
  translate();
});
$("cancel").addEventListener("click", () => fetch(`/api/tasks/${encodeURIComponent(chosen)}/cancel`, { method: "POST" }));
translate();
follow("/api/board/events", (patch) => { CASES[patch.kind](patch); redraw(); }, (on) => {
  connected = on;
  showConnection();
});

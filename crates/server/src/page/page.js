// What the page adds to what the server has written: live updates, keys, relative times. All of it can be done without.
"use strict";

const body = document.body;
const link = document.getElementById("link");

// --- Times -----------------------------------------------------------------------------------------------------------
function span(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}
function tellTimes() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000));
    const told = seconds < 5 ? "just now" : `${span(seconds)} ago`;
    if (time.textContent !== told) time.textContent = told;
  }
}
setInterval(tellTimes, 10000);
function took(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
// Counted from the server's figure, whose clock may differ from the one here.
function countOn() {
  for (const clock of document.querySelectorAll("[data-clock]")) {
    clock.began ??= performance.now() - clock.dataset.clock * 1000;
    const counted = took(Math.floor((performance.now() - clock.began) / 1000));
    if (clock.textContent !== counted) clock.textContent = counted;
  }
}
countOn();
setInterval(countOn, 1000);

// --- Live: an event says that something changed, then the view is read again and what differs is put in its place --------
let events = null;
let reading = false;
let stale = false;

function plain(part) {
  const copy = part.cloneNode(true);
  copy.classList.remove("here");
  for (const time of copy.querySelectorAll("time[data-ago], [data-clock]")) { time.textContent = ""; delete time.dataset.clock; }
  for (const row of copy.querySelectorAll(".here")) row.classList.remove("here");
  return copy.outerHTML.replaceAll(' class=""', "");
}
function put(old, fresh) {
  // What is being written is not taken away.
  if (old.hasAttribute("data-once") && old.firstElementChild) return;
  if (plain(old) === plain(fresh)) return;
  const at = document.activeElement && old.contains(document.activeElement) ? document.activeElement : null;
  const href = at && at.getAttribute("href");
  if (old.classList.contains("here")) fresh.classList.add("here");
  const picked = old.querySelector(".pick:checked") && fresh.querySelector("input.pick");
  if (picked) picked.checked = true;
  old.replaceWith(fresh);
  if (href) fresh.querySelector(`[href="${CSS.escape(href)}"]`)?.focus();
}
function putRows(old, fresh) {
  const before = new Map([...old.children].map((row) => [row.id, row]));
  let next = old.firstElementChild;
  for (const row of [...fresh.children]) {
    const known = before.get(row.id);
    before.delete(row.id);
    if (known && known === next) {
      next = known.nextElementSibling;
      put(known, row);
    } else {
      old.insertBefore(row, next);
      if (known) known.remove();
    }
  }
  for (const gone of before.values()) gone.remove();
}
async function read() {
  if (!body.dataset.live) return;
  if (reading) { stale = true; return; }
  reading = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
    // Signed out, or removed: the server says so.
    if (answer.status === 401 || answer.status === 404) { location.reload(); return; }
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of fresh.querySelectorAll("[data-part]")) {
      const old = document.getElementById(part.id);
      if (!old) {
        const parent = document.getElementById("main").firstElementChild;
        (parent.classList.contains("reading") ? parent : document.getElementById("main")).append(part);
      } else if (old.hasAttribute("data-rows") && part.hasAttribute("data-rows")) putRows(old, part);
      else put(old, part);
    }
    showButtons();
    tellTimes();
    countOn();
    body.dataset.updates = String(Number(body.dataset.updates || 0) + 1);
    countSelected();
    if (events?.readyState === EventSource.OPEN) link.hidden = true;
  } catch {
    link.hidden = false;
    setTimeout(() => { if (!document.hidden) read(); }, 2000);
  } finally {
    reading = false;
    if (stale) { stale = false; setTimeout(read, 300); }
  }
}
function follow() {
  if (!body.dataset.live || events || document.hidden) return;
  let opened = false;
  events = new EventSource(body.dataset.live);
  events.addEventListener("open", () => {
    link.hidden = true;
    // What happened while no one listened.
    if (!opened || body.dataset.lost) read();
    opened = true;
    delete body.dataset.lost;
  });
  events.addEventListener("change", read);
  events.addEventListener("error", () => {
    if (document.hidden) return;
    link.hidden = false;
    body.dataset.lost = "yes";
    // A browser gives up for good where the answer was no stream: a proxy that speaks for a server that is away.
    if (events && events.readyState === EventSource.CLOSED) { leave(); setTimeout(follow, 2000); }
  });
}
function leave() { events?.close(); events = null; }
document.addEventListener("visibilitychange", () => {
  if (document.hidden) leave();
  else { follow(); read(); }
});
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", (event) => { if (event.persisted) { follow(); read(); } });
follow();

// --- Select several jobs; search while typing -------------------------------------------------------------------------
function boxes() { return [...document.querySelectorAll("input.pick")]; }
function countSelected() {
  const form = document.getElementById("several");
  if (!form) return;
  const all = boxes();
  const count = all.filter((box) => box.checked).length;
  form.hidden = all.length === 0;
  document.getElementById("all-jobs").hidden = false;
  const every = document.getElementById("select-all");
  every.checked = count > 0 && count === all.length;
  every.indeterminate = count > 0 && count < all.length;
  document.getElementById("selected").textContent = count ? `${count} selected:` : "Select jobs to";
  for (const button of form.querySelectorAll("button")) button.disabled = count === 0;
}
document.addEventListener("change", (event) => {
  if (event.target.id === "select-all") for (const box of boxes()) box.checked = event.target.checked;
  if (event.target.matches("#select-all, .pick")) countSelected();
  if (event.target.matches(".filters select")) search();
});
countSelected();
let searching = 0;
function search() {
  const fields = new FormData(document.querySelector(".filters"));
  const query = new URLSearchParams([...fields].filter(([, value]) => value));
  history.replaceState(null, "", `/ui${query.size ? `?${query}` : ""}`);
  document.getElementById("clear").hidden = query.size === 0;
  read();
}
document.addEventListener("input", (event) => {
  if (!event.target.matches(".filters input")) return;
  clearTimeout(searching);
  searching = setTimeout(search, 250);
});

// --- Keys ------------------------------------------------------------------------------------------------------------
function rows() { return [...document.querySelectorAll(".jobs > .job")]; }
function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("here"));
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  for (const row of all) row.classList.toggle("here", row === next);
  next.querySelector("a.title")?.focus();
  next.scrollIntoView({ block: "nearest" });
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "x") document.querySelector(".job.here input.pick")?.click();
  else if (event.key === "/") {
    const search = document.getElementById("search");
    if (!search) return;
    event.preventDefault();
    search.focus();
  } else if (event.key === "a") location.assign("/ui/ask");
  else if (event.key === "?") document.getElementById("help").showModal();
});

// --- Copy and print --------------------------------------------------------------------------------------------------
function showButtons() {
  for (const button of document.querySelectorAll("[data-print]")) button.hidden = false;
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("[data-copy], [data-copy-report]")) button.hidden = false;
}
// Formatted for a word processor, and as Markdown without its front matter for everything else.
async function copyReport(address) {
  const markdown = fetch(address).then((answer) => answer.text()).then((text) => text.replace(/^---\n[^]*?\n---\n+/, ""));
  const shown = document.getElementById("report").outerHTML + document.getElementById("sources").outerHTML;
  const blob = (type, text) => new Blob([text], { type });
  await navigator.clipboard.write([new ClipboardItem({ "text/html": blob("text/html", shown), "text/plain": markdown.then((text) => blob("text/plain", text)) })]);
}
document.addEventListener("click", (event) => {
  const { target } = event;
  // What was written in the form before is there as it was.
  if (target.matches?.("[data-back]") && history.length > 1) { event.preventDefault(); history.back(); return; }
  if (target.matches?.("[data-print]")) { print(); return; }
  const { copy, copyReport: report } = target.dataset ?? {};
  if (!copy && !report) return;
  const copied = report ? copyReport(report) : navigator.clipboard.writeText(document.getElementById(copy).textContent);
  copied.then(() => { target.textContent = "Copied"; }, () => { target.textContent = "Not copied"; });
});
showButtons();

// Live pages: one stream a browser, fragments of the page itself, keys. Every page works without this file.
"use strict";
(() => {
  const body = document.body;
  const $ = (id) => document.getElementById(id);
  const policy = window.trustedTypes ? trustedTypes.createPolicy("casebook", { createHTML: (text) => text }) : null;
  // Only answers of this server to this page's own address are parsed.
  const parsed = (text) => new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");

  // ---- Parts of the page that change -------------------------------------------------------------------------
  // A fold is recognised by its summary, a row by its first link, everything else by its id or its place.
  const marks = { DETAILS: (one) => one.firstElementChild?.textContent, LI: (one) => one.querySelector("a")?.getAttribute("href") };
  const key = (node) => node.id || marks[node.nodeName]?.(node) || "";
  // Changes only what differs: little is laid out again, and focus, folds and places of scrolling stay.
  function replace(old, fresh) {
    if (old.isEqualNode(fresh)) return false;
    // Rows of the log do not change: only new ones were asked for, and the oldest make room.
    if (fresh.dataset?.most) {
      old.prepend(...fresh.childNodes);
      while (old.children.length > fresh.dataset.most) old.lastChild.remove();
      return true;
    }
    if (old.nodeType !== 1 || old.nodeName !== fresh.nodeName) { old.replaceWith(fresh); return true; }
    for (const { name, value } of fresh.attributes) {
      if (name === "open" || old.getAttribute(name) === value) continue;
      old.setAttribute(name, value);
      if (name === "value") old.value = value;
    }
    for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
    const known = new Map([...old.children].filter(key).map((child) => [key(child), child]));
    let at = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const named = key(child);
      const same = named ? known.get(named) : at && !key(at) && at.nodeName === child.nodeName ? at : null;
      known.delete(named);
      if (!same) { old.insertBefore(child, at); continue; }
      while (at !== same) { const gone = at; at = at.nextSibling; known.delete(key(gone)); gone.remove(); }
      at = at.nextSibling;
      replace(same, child);
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
    return true;
  }

  // Rows stay where they are; new ones wait behind a button.
  const standing = (row) => [...row.querySelectorAll(".case > div:not(.right)")].map((one) => one.textContent).join();
  function rows(list, fresh) {
    const known = new Map([...list.querySelectorAll("li[id]")].map((row) => [row.id, row]));
    let added = 0;
    fresh.querySelectorAll("li[id]").forEach((row) => {
      const old = known.get(row.id);
      if (!old) { added += 1; return; }
      const before = standing(old);
      replace(old, row);
      if (standing(old) !== before) requestAnimationFrame(() => old.classList.add("flash"));
    });
    const button = $("news");
    if (!button) return;
    button.hidden = added === 0;
    button.textContent = added === 1 ? "1 new case: show" : `${added} new cases: show`;
    if (added) say(button.textContent);
  }

  // A lone change is shown at once. While many come, or while the page takes long, it is fetched less often.
  const OFTEN = 25;
  const SELDOM = 600;
  let loading = false;
  let timer = 0;
  // The page may differ without a notice.
  let stale = false;
  // Events: the last one recorded, and the last one that the page shows. A list counts them.
  const last = (page) => Number(page.getElementById("scrub")?.dataset.last ?? 0);
  let latest = 0;
  let shown = last(document);
  // The page is new when it is loaded.
  let next = Date.now() + 250;
  function changed() { stale = true; later(); }
  function later() {
    if (timer || loading || document.hidden || !(stale || latest > shown)) return;
    timer = setTimeout(() => { timer = 0; refresh(); }, Math.max(0, next - Date.now()));
  }
  document.addEventListener("visibilitychange", later);
  async function refresh() {
    const begun = Date.now();
    const pause = Math.min(SELDOM, OFTEN * (latest - shown));
    loading = true;
    stale = false;
    shown = Math.max(shown, latest);
    try {
      const place = new URL(location.href);
      const row = document.querySelector(".log > li")?.id.slice(2);
      if (row) place.searchParams.set("have", row);
      const answer = await fetch(place, { headers: { accept: "text/html" }, redirect: "error" });
      if (answer.status === 401) { state("out"); loading = false; return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const page = parsed(await answer.text());
      shown = Math.max(shown, last(page));
      page.querySelectorAll("[data-part]").forEach((fresh) => {
        const old = fresh.id && $(fresh.id);
        if (old && !(old.id === "player" && old.contains(document.activeElement))) replace(old, document.adoptNode(fresh));
      });
      const list = document.querySelector("[data-rows]");
      const fresh = page.querySelector("[data-rows]");
      if (list && fresh) {
        if (list.querySelector("li")) rows(list, document.adoptNode(fresh)); else replace(list, document.adoptNode(fresh));
      }
      const verdict = document.querySelector("#hero .verdict");
      if (verdict && verdict.textContent !== told) { told = verdict.textContent; say(told); }
      if (page.body.dataset.live === "none") { body.dataset.live = "none"; state("done"); }
    } catch (error) { state("lost"); }
    loading = false;
    next = Math.max(begun + pause, 2 * Date.now() - begun);
    later();
  }
  let told = document.querySelector("#hero .verdict")?.textContent;

  // ---- State of the connection -------------------------------------------------------------------------------
  const names = { live: "live", lost: "reconnecting", done: "complete", off: "loaded once", out: "sign in again" };
  function state(name) {
    const sign = $("live");
    // Setting an equal text would paint the page once more.
    if (!sign || sign.textContent === names[name]) return;
    sign.dataset.state = name === "done" ? "live" : name;
    sign.textContent = names[name];
  }
  let said = 0;
  function say(text) {
    // At most one sentence in five seconds.
    if (Date.now() - said < 5000 || !$("said")) return;
    said = Date.now();
    $("said").textContent = text;
  }

  // ---- One stream a browser: the tab that holds the lock shares it ---------------------------------------------
  const scope = body.dataset.live;
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("casebook") : null;
  let heard = 0;
  // The last event of each investigation. One notice may be of many events.
  const seen = new Map();
  function take(message) {
    heard = Date.now();
    if (message.kind === "lost") { state("lost"); changed(); return; }
    if (body.dataset.live === "none") return;
    state("live");
    if (message.kind === "begin") changed();
    if (message.kind !== "notice" || (scope !== "all" && message.id !== body.dataset.id)) return;
    latest = scope === "all" ? latest + Math.max(1, message.seq - (seen.get(message.id) ?? message.seq)) : message.seq;
    seen.set(message.id, message.seq);
    later();
  }
  function share(message) { take(message); if (channel) channel.postMessage(message); }
  let beat = () => {};
  function stream(own) {
    const pass = own ? take : share;
    let source = null;
    let retry = 0;
    function begin() {
      source = new EventSource("/api/v1/events");
      source.addEventListener("begin", () => pass({ kind: "begin" }));
      source.addEventListener("notice", (event) => {
        const notice = JSON.parse(event.data);
        pass({ kind: "notice", id: notice.investigation, seq: notice.seq });
      });
      source.onerror = () => {
        pass({ kind: "lost" });
        // After a refusal, such as that of a server that was restarted, the browser does not try again by itself.
        if (source.readyState === 2) retry = setTimeout(begin, 5000);
      };
    }
    begin();
    beat = () => { if (source.readyState === 1) pass({ kind: "beat" }); };
    const beats = setInterval(beat, 10000);
    return () => { clearInterval(beats); clearTimeout(retry); source.close(); };
  }
  function listen() {
    if (!channel || !navigator.locks) { alone(); return; }
    channel.onmessage = ({ data }) => { if (data.kind === "ask") beat(); else take(data); };
    channel.postMessage({ kind: "ask" });
    navigator.locks.request("casebook-stream", () => { if (close) { close(); close = null; } stream(false); return new Promise(() => {}); });
    // A follower asks for the present state once, and opens its own stream when the leader is silent.
    heard = Date.now();
    changed();
    setInterval(() => { if (Date.now() - heard > 40000 && !close) alone(); }, 5000);
  }
  let close = null;
  function alone() {
    const toggle = () => {
      if (document.hidden && close) { close(); close = null; }
      else if (!document.hidden && !close) close = stream(true);
    };
    document.addEventListener("visibilitychange", toggle);
    toggle();
  }
  if (scope && scope !== "none") listen();
  // What this server does not record has no events.
  const soon = setInterval(() => { if (document.querySelector("[data-soon]")) changed(); else clearInterval(soon); }, 1000);

  // ---- Replay ------------------------------------------------------------------------------------------------
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let playing = 0;
  const go = (at) => location.assign(`/i/${encodeURIComponent($("scrub").dataset.id)}?at=${at}`);
  function replay() {
    const [slide, play] = [$("slide"), $("play")];
    if (!play || sessionStorage.getItem("casebook-play") !== $("scrub").dataset.id) return;
    if (Number(slide.value) === Number(slide.max)) { stop(); return; }
    play.textContent = "Stop";
    playing = setTimeout(() => go(after()), calm.matches ? 2500 : 900);
  }
  // The moment after this one: 60 of them are the whole log.
  function after() {
    const slide = $("slide");
    return Math.min(Number(slide.value) + Math.max(1, Math.round(last(document) / 60)), Number(slide.max));
  }
  function stop() { sessionStorage.removeItem("casebook-play"); clearTimeout(playing); $("play").textContent = "Play"; }
  document.addEventListener("input", ({ target }) => { if (target.id === "slide") $("at").value = target.value; });
  document.addEventListener("change", ({ target }) => { if (target.id === "slide") go(target.value); });
  replay();

  // ---- Buttons -----------------------------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    if (event.target.closest("#news")) location.reload();
    if (!event.target.closest("#play")) return;
    if (sessionStorage.getItem("casebook-play")) { stop(); return; }
    sessionStorage.setItem("casebook-play", $("scrub").dataset.id);
    go(Number($("slide").value) >= Number($("slide").max) ? 1 : after());
  });

  // ---- Keys: never with a modifier, never while typing ---------------------------------------------------------
  const places = { i: "/", l: "/launch", c: "/compare", s: "/settings", h: "/insights" };
  let prefix = "";
  function move(by) {
    const all = [...document.querySelectorAll(".case, .find a, .log a.num")];
    const at = all.indexOf(document.activeElement);
    const to = all[Math.max(0, Math.min(all.length - 1, at + by))];
    if (to) to.focus();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || body.dataset.keys === "off") return;
    const where = event.target;
    if (/^(INPUT|TEXTAREA|SELECT|BUTTON|SUMMARY)$/.test(where.tagName)) { if (event.key === "Escape") where.blur(); return; }
    if (event.key === " " && where.tagName === "A") return;
    const key = prefix + event.key;
    prefix = "";
    if (event.key === "g" && key === "g") { prefix = "g"; return; }
    if (key.length === 2 && key[0] === "g" && places[key[1]]) { location.assign(places[key[1]]); return; }
    if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "u") location.assign("/");
    else if (/^[1-9]$/.test(key)) document.querySelectorAll(".tabs a")[Number(key) - 1]?.click();
    else {
      const target = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
      if (!target) return;
      event.preventDefault();
      if (target.tagName === "INPUT") target.focus(); else target.click();
    }
  });

  // ---- Files -------------------------------------------------------------------------------------------------
  const drop = $("drop");
  if (drop) {
    const area = $("alert");
    const read = (file) => file.text().then((text) => { area.value = text; area.focus(); });
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      if (event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
    });
    $("alert-file")?.addEventListener("change", (event) => { if (event.target.files[0]) read(event.target.files[0]); });
  }
  const upload = $("upload");
  if (upload) {
    upload.hidden = false;
    upload.addEventListener("submit", async (event) => {
      event.preventDefault();
      const files = [...$("files").files];
      const state = $("upload-state");
      try {
        const begun = await fetch("/api/v1/uploads", { method: "POST" });
        if (!begun.ok) throw new Error((await begun.json()).detail);
        const { upload: name } = await begun.json();
        for (const [n, file] of files.entries()) {
          state.textContent = `${n} of ${files.length} files`;
          const path = (file.webkitRelativePath || file.name).split("/").map(encodeURIComponent).join("/");
          const put = await fetch(`/api/v1/uploads/${name}/files/${path}`, { method: "PUT", body: file });
          if (!put.ok) throw new Error((await put.json()).detail);
        }
        location.assign(`/launch?body=${encodeURIComponent(name)}`);
      } catch (error) { state.textContent = `Upload failed: ${error.message}`; }
    });
  }
})();

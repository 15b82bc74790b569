"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (query, root = document) => Array.from(root.querySelectorAll(query));

  const themes = ["auto", "light", "dark"];
  const button = byId("theme");
  const remembered = () => { try { return localStorage.getItem("metastore-theme"); } catch { return null; } };
  const apply = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    try { localStorage.setItem("metastore-theme", theme); } catch { /* a page from a file may not remember */ }
    return theme;
  };
  let theme = apply(themes.includes(remembered()) ? remembered() : "auto");
  button.addEventListener("click", () => { theme = apply(themes[(themes.indexOf(theme) + 1) % themes.length]); });
  byId("print").addEventListener("click", async () => { await drawAll(); print(); });
  [button, byId("print"), document.querySelector(".search")].forEach((one) => { one.hidden = false; });

  const body = document.querySelector("#index tbody");
  const cards = byId("cards");

  const packs = new Map();
  const unpack = async (number) => {
    const bytes = Uint8Array.from(atob(byId(`p${number}`).textContent), (character) => character.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(unpacked).text());
  };
  const draw = async (card) => {
    if (card.hasChildNodes()) return;
    const position = Number(card.id.slice(1));
    const size = Number(cards.dataset.pack);
    const number = Math.floor(position / size);
    if (!packs.has(number)) packs.set(number, unpack(number));
    const contents = await packs.get(number);
    if (card.hasChildNodes()) return;
    card.innerHTML = contents[position % size];
    all(".chart", card).forEach((chart) => chart.setAttribute("tabindex", "0"));
  };
  const drawAll = () => Promise.all(all("article", cards).map(draw));
  if ("pack" in cards.dataset) {
    cards.classList.add("drawn");
    const watch = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) { draw(target); watch.unobserve(target); }
    }, { rootMargin: "600px" });
    all("article", cards).forEach((card) => watch.observe(card));
  }
  const lines = all("tr", body).map((row) => ({
    row,
    card: byId(`c${row.dataset.c}`),
    text: `${row.cells[0].textContent} ${row.cells[1].textContent}`.toLowerCase(),
    hasAlerts: "v" in row.cells[6].dataset,
  }));
  const search = byId("search");
  const only = byId("only");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const line of lines) {
      const fits = words.every((word) => line.text.includes(word)) && (!only.checked || line.hasAlerts);
      line.row.hidden = line.card.hidden = !fits;
      shown += fits;
    }
    byId("found").textContent = `${shown.toLocaleString("en")} of ${lines.length.toLocaleString("en")}`;
  };
  search.addEventListener("input", filter);
  only.addEventListener("change", filter);
  filter();

  const heads = all("#index thead th");
  const valueOf = (row, key) => {
    const cell = row.cells[key];
    return cell.dataset.v !== undefined ? Number(cell.dataset.v) : key > 1 ? null : cell.textContent;
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  const sort = (head) => {
    const key = Number(head.dataset.key);
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = lines.map((line) => [valueOf(line.row, key), line]);
    keyed.sort(([a, one], [b, other]) => {
      if (a === null || b === null) return (a === null) - (b === null) || one.row.dataset.c - other.row.dataset.c;
      return (down ? -1 : 1) * compare(a, b) || one.row.dataset.c - other.row.dataset.c;
    });
    body.append(...keyed.map(([, line]) => line.row));
    cards.append(...keyed.map(([, line]) => line.card));
  };
  heads.forEach((head) => {
    const inside = document.createElement("button");
    inside.type = "button";
    inside.append(...head.childNodes);
    inside.addEventListener("click", () => sort(head));
    head.append(inside);
    if (head.hasAttribute("aria-sort")) head.removeAttribute("aria-sort");
  });

  const jump = async () => {
    const card = /^#c\d+$/.test(location.hash) && byId(location.hash.slice(1));
    if (!card) return;
    if (card.hidden) { search.value = ""; only.checked = false; filter(); }
    await draw(card);
    card.focus({ preventScroll: true });
    card.scrollIntoView();
  };
  addEventListener("hashchange", jump);
  jump();

  const tip = byId("tip");
  const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  mark.setAttribute("class", "mark");
  const show = (chart, place, x, y) => {
    const bars = chart.dataset.bars.split("\n");
    const at = Math.max(0, Math.min(bars.length - 1, place));
    const [values, share, before] = bars[at].split("\t");
    tip.textContent = before ? `${values}\nnow ${share}, before ${before}` : `${values}: ${share}`;
    tip.hidden = false;
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, y - tip.offsetHeight - 8)}px`;
    const { width, height } = chart.viewBox.baseVal;
    const step = width / bars.length;
    for (const [name, value] of [["x", at * step - 0.5], ["y", 0], ["width", step], ["height", height]]) mark.setAttribute(name, value);
    chart.append(mark);
    return at;
  };
  const hide = () => { tip.hidden = true; mark.remove(); };
  cards.addEventListener("mousemove", (event) => {
    const chart = event.target.closest(".chart");
    if (!chart) { hide(); return; }
    const box = chart.getBoundingClientRect();
    show(chart, Math.floor(((event.clientX - box.left) / box.width) * chart.dataset.bars.split("\n").length), event.clientX, event.clientY);
  });
  cards.addEventListener("mouseleave", hide);
  addEventListener("scroll", hide, { passive: true });
  cards.addEventListener("keydown", (event) => {
    const chart = event.target.closest(".chart");
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!chart || !step) return;
    event.preventDefault();
    const box = chart.getBoundingClientRect();
    const bars = chart.dataset.bars.split("\n");
    const place = Math.max(0, Math.min(bars.length - 1, Number(chart.dataset.at ?? -step) + step));
    chart.dataset.at = place;
    show(chart, place, box.left + (place / bars.length) * box.width, box.top);
    chart.setAttribute("aria-label", tip.textContent);
  });
  cards.addEventListener("focusout", hide);
  all(".chart").forEach((chart) => chart.setAttribute("tabindex", "0"));
})();

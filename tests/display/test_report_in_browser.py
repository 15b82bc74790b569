"""The page in a real browser: search, sort, jump, theme, keyboard, and no line wider than the window."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess

import pytest

from display.pages import HOSTILE, ROWS, column, contents
from metastore.display.report.page import render_page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on the path: apt-get install chromium"),
]

USE = """
const state = {};
const rows = () => Array.from(document.querySelectorAll("#index tbody tr")).filter((row) => !row.hidden);
const names = () => rows().map((row) => row.cells[0].textContent);
const shown = () => Array.from(document.querySelectorAll("article")).filter((card) => !card.hidden).length;
const search = document.getElementById("search");
const type = (text) => { search.value = text; search.dispatchEvent(new Event("input")); };
state.all = shown();
type("price int");
state.searched = [names(), shown(), document.getElementById("found").textContent];
type("");
document.getElementById("only").click();
state.with_alerts = names();
document.getElementById("only").click();
const head = document.querySelectorAll("#index thead button")[3];
head.click();
state.up = names();
head.click();
const first = document.querySelector("#cards article h3 bdi").textContent;
state.down = [names(), first, document.querySelectorAll("#index [aria-sort]").length];
const back = () => getComputedStyle(document.body).backgroundColor;
const themes = [back()];
for (const _ of [1, 2, 3]) { document.getElementById("theme").click(); themes.push(back()); }
state.themes = themes;
const chart = document.querySelector("article .chart");
chart.focus();
const press = (key) => chart.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
["ArrowRight", "ArrowRight"].forEach(press);
const tip = document.getElementById("tip").textContent;
state.bar = [document.activeElement === chart, tip, chart.getAttribute("aria-label")];
type("no such column");
location.hash = "#c1";
setTimeout(() => {
  state.jumped = [document.activeElement.id, shown()];
  state.room = [document.documentElement.scrollWidth, innerWidth];
  document.documentElement.dataset.state = JSON.stringify(state);
}, 200);
"""


USE_WIDE = """
const state = {};
const articles = Array.from(document.querySelectorAll("article"));
const drawn = () => articles.filter((card) => card.hasChildNodes()).length;
state.all = articles.length;
setTimeout(() => {
  const first = document.querySelector("article");
  state.first = [first.querySelector("h3 bdi").textContent, first.querySelector(".chart").tabIndex];
  state.few = drawn() < articles.length / 2;
  location.hash = "#c1234";
}, 500);
setTimeout(() => {
  const card = document.activeElement;
  state.jumped = [card.id, card.querySelector("h3 bdi").textContent, card.querySelectorAll("svg.chart").length];
  document.documentElement.dataset.state = JSON.stringify(state);
}, 1500);
"""


def run(html, folder, width, use=USE):
    """Run a script inside the page, allowed by its policy, and return its result."""
    digest = base64.b64encode(hashlib.sha256(use.encode()).digest()).decode()
    allowed = html.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    page = folder / "page.html"
    page.write_text(allowed.replace("</body>", f"<script>{use}</script></body>"), "utf-8")
    command = [
        *(BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"),
        *(f"--window-size={width},900", "--virtual-time-budget=3000", "--dump-dom", page.as_uri()),
    ]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": str(folder)}
    )
    (state,) = re.findall(r'data-state="([^"]*)"', done.stdout)
    return json.loads(state.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@pytest.mark.parametrize("width", [1100, 500])
def test_in_use(width, tmp_path):
    columns = [
        column("price", "decimal(10,2)", approx_unique=30),
        column("price_id", "int", approx_unique=100),
        column(HOSTILE, values=(HOSTILE,), approx_unique=9),
        column("gone", "string", null_count=ROWS, null_percentage=100.0, approx_unique=None),
    ]
    state = run(render_page(contents(*columns)), tmp_path, width)
    assert state["all"] == 4
    assert state["searched"] == [["price_id"], 1, "1 of 4"]
    assert state["with_alerts"] == ["gone"]
    assert state["up"] == [HOSTILE, "price", "price_id", "gone"]  # what is not known comes last
    assert state["down"] == [["price_id", "price", HOSTILE, "gone"], "price_id", 1]
    auto, light, dark, again = state["themes"]
    assert auto == again
    assert light != dark
    has_focus, tip, label = state["bar"]
    assert has_focus
    assert re.fullmatch(r"[\d,.]+ to [\d,.]+: [\d.]+ %", tip)
    assert label == tip
    assert state["jumped"] == ["c1", 4]
    assert state["room"][0] <= state["room"][1]


def test_two_thousand_columns(tmp_path):
    html = render_page(contents(*(column(f"c{i}", "int") for i in range(2000))))
    state = run(html, tmp_path, 1100, USE_WIDE)
    assert state == {"all": 2000, "first": ["c0", 0], "few": True, "jumped": ["c1234", "c1234", 1]}

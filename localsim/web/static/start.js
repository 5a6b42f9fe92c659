// Lets three talks grow on their page, and makes tabs of them on a narrow screen. Without it the page loads itself again.
"use strict";

const three = document.querySelector("[data-tabs]");
const watching = document.querySelector("[data-watch]");

// ---- tabs, as the ARIA pattern wants them: one stop of the Tab key, arrows between the tabs ----

function tabsOf(place) {
  const panels = [...place.querySelectorAll("[data-tab]")];
  const list = document.createElement("div");
  list.className = "tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "The private sides and the three talks");
  const tabs = panels.map((panel) => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `tab-${panel.dataset.tab}`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    tab.textContent = panel.dataset.tab;
    tab.append(document.createElement("small"));
    list.append(tab);
    return tab;
  });
  place.before(list);
  const narrow = matchMedia("(max-width: 1000px)");
  const kept = `tab ${location.pathname.startsWith("/start") ? "start" : ""}`;
  let chosen = Math.max(0, panels.findIndex((panel) => panel.dataset.tab === (sessionStorage.getItem(kept) || "agents")));

  function show() {
    panels.forEach((panel, number) => {
      panel.hidden = narrow.matches && number !== chosen;
      if (narrow.matches) {
        panel.setAttribute("role", "tabpanel");
      } else {
        panel.removeAttribute("role");
      }
      tabs[number].setAttribute("aria-selected", String(number === chosen));
      tabs[number].tabIndex = number === chosen ? 0 : -1;
    });
  }

  function choose(number) {
    chosen = (number + panels.length) % panels.length;
    sessionStorage.setItem(kept, panels[chosen].dataset.tab);
    show();
  }

  list.addEventListener("click", (event) => {
    const tab = event.target.closest("button");
    if (tab) choose(tabs.indexOf(tab));
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(chosen + step);
    tabs[chosen].focus();
  });
  narrow.addEventListener("change", show);
  show();
  return list;
}

function count(list) {
  for (const turns of document.querySelectorAll("[data-grow]")) {
    const number = turns.children.length;
    list.querySelector(`#tab-${turns.dataset.grow} small`).textContent = number === 1 ? "1 turn" : `${number} turns`;
  }
  list.querySelector("#tab-sides small").textContent = "private";
}

const tabs = three ? tabsOf(three) : null;
if (tabs) count(tabs);

// ---- growth ----

// New turns are appended and nothing else is touched, so that a reader's place and focus stay.
function grow(now, next) {
  const atEnd = now.scrollHeight - now.scrollTop - now.clientHeight < 60;
  for (let number = 0; number < next.children.length; number += 1) {
    const old = now.children[number];
    const fresh = next.children[number].cloneNode(true);
    if (!old) {
      fresh.classList.add("new");
      now.append(fresh);
    } else if (old.textContent !== fresh.textContent) {
      old.replaceWith(fresh);
    }
  }
  if (atEnd) now.scrollTop = now.scrollHeight; // whoever has scrolled back to read stays there
}

function replace(now, next) {
  if (now.innerHTML === next.innerHTML) return;
  const focused = now.contains(document.activeElement);
  now.replaceChildren(...next.cloneNode(true).childNodes);
  if (focused) (now.querySelector("button, a") || document.querySelector("main")).focus();
}

// Whoever listens hears how many talks are over, and not every turn of three talks at once.
function speak() {
  const place = document.querySelector("[data-spoken]");
  const said = [...document.querySelectorAll("[data-part^=verdict-], [data-part=now] b")].map((each) => each.textContent.trim());
  const text = said.filter(Boolean).join(" ");
  if (place && place.textContent !== text) place.textContent = text;
}

let over = false;

async function look() {
  try {
    const answer = await fetch(watching.dataset.watch, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html"); // our own template, all escaped
    const phase = next.querySelector("[data-phase]");
    if (!phase) return;
    if (phase.dataset.phase !== "going") {
      over = true; // a second reload would begin the first one anew
      location.reload();
      return;
    }
    for (const each of next.querySelectorAll("[data-part]")) {
      replace(document.querySelector(`[data-part="${each.dataset.part}"]`), each);
    }
    for (const each of next.querySelectorAll("[data-grow]")) {
      grow(document.querySelector(`[data-grow="${each.dataset.grow}"]`), each);
    }
    if (tabs) count(tabs);
    speak();
  } catch {
    // The server did not answer, perhaps because it was stopped; the next round asks again.
  }
}

async function keepLooking() {
  while (!over) {
    await look();
    await new Promise((done) => setTimeout(done, 700));
  }
}

if (watching) keepLooking();

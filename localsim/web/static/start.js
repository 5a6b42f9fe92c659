// Lets three talks grow on their page, and counts their turns on the tabs. Without it the page loads itself again.
"use strict";

const tabs = document.querySelector("[data-tabs] .tablist");
const watching = document.querySelector("[data-watch]");

// ---- tabs: the page loads itself again when the run ends, and the chosen tab stays ----

function count() {
  for (const tab of tabs.querySelectorAll("input")) {
    const number = document.querySelector(`[data-grow="${CSS.escape(tab.value)}"]`)?.children.length;
    tab.nextElementSibling.querySelector("small").textContent =
      number === undefined ? "private" : number === 1 ? "1 turn" : `${number} turns`;
  }
}

if (tabs) {
  const kept = tabs.querySelector(`input[value="${CSS.escape(sessionStorage.getItem("start tab") || "agents")}"]`);
  if (kept) kept.checked = true;
  tabs.addEventListener("change", (event) => sessionStorage.setItem("start tab", event.target.value));
  count();
}

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
    if (tabs) count();
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

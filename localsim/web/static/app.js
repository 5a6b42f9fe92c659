// Pages work without this file: it adds keyboard commands and updates pages of conversations in progress.
"use strict";

function typing(target) {
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}

function step(direction) {
  const items = [...document.querySelectorAll("[data-turn], [data-item]")];
  if (!items.length) return;
  const at = items.indexOf(document.activeElement);
  const next = items[Math.max(0, Math.min(items.length - 1, at + direction))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

// Opens every folded part that holds an element.
function unfold(element) {
  for (let part = element.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
}

// On a phone the private sides are folded: the talk comes first.
if (window.matchMedia("(max-width: 820px)").matches) {
  for (const part of document.querySelectorAll("details[data-fold]")) part.open = false;
}

// A mark in a text folds and unfolds its explanation in place; without this it is a link to the explanation.
document.addEventListener("click", (event) => {
  const mark = event.target.closest("a.why");
  const part = mark && document.getElementById(mark.hash.slice(1))?.closest("details");
  if (!part) return;
  event.preventDefault();
  part.open = !part.open;
  if (part.open) part.scrollIntoView({ block: "nearest" });
});

function showTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target) unfold(target);
}
window.addEventListener("hashchange", showTarget);
showTarget();

// A part of a page that takes a while is fetched once, after the page.
for (const place of document.querySelectorAll("[data-fetch]")) {
  fetch(place.dataset.fetch, { headers: { accept: "text/html" } })
    .then(async (answer) => {
      if (answer.ok) place.innerHTML = await answer.text(); // made by our own templates, everything in it escaped
    })
    .catch(() => {}); // the link in the page stays
}

const loaded = performance.now();

// The words of a turn are one line, however wide: Enter sends them, as in a field of one line.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing || !event.target.matches("textarea[data-line]")) return;
  event.preventDefault();
  const form = event.target.form;
  if (!event.repeat && !form.querySelector("button[data-send]:disabled")) form.requestSubmit();
});

document.addEventListener("keydown", (event) => {
  if (event.repeat) return; // holding a key must not answer one item after another
  if (event.target.matches("[data-submit]") && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.form.requestSubmit();
    return;
  }
  if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
  const choice = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (choice) {
    choice.click();
  } else if (event.key === "j") {
    step(1);
  } else if (event.key === "k") {
    step(-1);
  } else if (event.key === "n") {
    follow('a[rel="next"]');
  } else if (event.key === "p") {
    follow('a[rel="prev"]');
  } else if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (search) {
      event.preventDefault();
      unfold(search);
      search.focus();
    }
  } else if (event.key === "Enter" && event.target.matches("[data-turn]")) {
    event.target.querySelector("a.index").click();
  }
});

// The input line of a game is outside the part that is fetched, so that no typed text is lost.
function takeTurn(place) {
  const state = place.querySelector("[data-my-turn]");
  const form = document.querySelector("[data-say]");
  if (!state) return;
  const mine = state.dataset.myTurn !== "";
  const announced = document.querySelector("[data-announce]");
  if (announced && announced.textContent !== state.textContent) announced.textContent = state.textContent;
  if (!form) return; // a game whose moves change from turn to turn has its forms in the part that was fetched
  for (const part of form.querySelectorAll("[data-send]")) part.disabled = !mine;
  if (mine) form.querySelector("[data-turn-field]").value = state.dataset.myTurn;
}

// A page whose form has been sent is about to be replaced: words typed into it would be lost, so it asks for none.
function leaving() {
  return document.querySelector("[data-say][data-sent]") !== null;
}

// A page whose server has been silent for two rounds says so.
let silent = 0;
function heard(answered) {
  silent = answered ? 0 : silent + 1;
  const notice = document.querySelector("[data-lost]");
  if (notice) notice.hidden = silent < 2;
}

// Fetches a part of the page again and again while the page is visible.
async function refresh(place) {
  if (document.visibilityState !== "visible" || leaving()) return;
  try {
    const answer = await fetch(place.dataset.live, { headers: { accept: "text/html" } });
    heard(true);
    if (answer.redirected) location.reload(); // another class has begun at this address: the page asks for its code
    if (!answer.ok || answer.redirected) return;
    const text = await answer.text();
    if (leaving()) return;
    if (text !== place.dataset.seen) {
      place.dataset.seen = text;
      place.innerHTML = text; // made by our own templates, everything in it escaped
      if (place.querySelector("[data-reload]")) location.reload();
      takeTurn(place);
    }
  } catch {
    heard(false); // the next round tries again
  }
}

for (const place of document.querySelectorAll("[data-live]")) {
  refresh(place);
  setInterval(() => refresh(place), Number(place.dataset.every || 2000));
}

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  const late = "careful" in form.dataset && performance.now() - loaded < 350; // the second half of a double click on the page before
  if (form.dataset.sent || late) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  setTimeout(() => delete form.dataset.sent, 4000);
});

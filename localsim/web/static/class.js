// A phone shows the newest turn above its input line, folds what one knows while the keyboard takes half of the screen,
// and else keeps it as the player left it. One fold is open at a time: a phone has no room for two beside the talk.
// Without this file a player scrolls and folds.
"use strict";

function showNewest() {
  const turns = document.querySelectorAll("[data-live] .turns li");
  if (turns.length) turns[turns.length - 1].scrollIntoView({ block: "nearest" });
}

for (const place of document.querySelectorAll("[data-live]")) {
  new MutationObserver(showNewest).observe(place, { childList: true });
}
addEventListener("resize", showNewest);

// A list that the writing line covers moves up, at once: the next tap would stop a smooth move halfway.
function showList(known) {
  const line = document.querySelector(".reach");
  const covered = line && known.getBoundingClientRect().bottom > line.getBoundingClientRect().top;
  if (covered) known.scrollIntoView({ behavior: "instant" });
}
// Each turn loads the page again.
const lists = [...document.querySelectorAll(".know")];
const heading = document.querySelector("h1")?.textContent;
const keep = (place, open) => sessionStorage.setItem(`${heading}/${place}`, open ? "open" : "");
lists.forEach((known, place) => {
  const left = sessionStorage.getItem(`${heading}/${place}`);
  if (left !== null) known.open = left === "open";
  else keep(place, known.open);
  known.firstElementChild.addEventListener("click", () => {
    const opens = !known.open;
    keep(place, opens);
    if (opens) requestAnimationFrame(() => showList(known));
    for (const [there, other] of lists.entries()) {
      if (!opens || other === known) continue;
      other.open = false;
      keep(there, false);
    }
  });
});
for (const tab of document.querySelectorAll(".know .tablist input")) {
  tab.addEventListener("click", () => showList(tab.closest(".know")));
}
for (const words of document.querySelectorAll("[data-line]")) {
  words.addEventListener("focus", () => {
    if (innerHeight >= 600 && !matchMedia("(pointer: coarse)").matches) return;
    for (const known of document.querySelectorAll(".know[open]")) known.open = false;
    showNewest();
  });
}
showNewest();

// What is typed and chosen for a turn outlives a reload, and a form that was refused: then the turn is still the same.
const saying = document.querySelector("[data-say]");
if (saying) {
  const turn = () => saying.querySelector("[data-turn-field]").value;
  const talk = saying.dataset.say;
  const fields = saying.querySelectorAll("textarea, select, input[type=checkbox], input[name=price]");
  const draft = JSON.parse(sessionStorage.getItem("draft") || "null");
  if (draft && draft.talk === talk && [null, turn()].includes(draft.sent)) {
    fields.forEach((field, place) => {
      if (field.type === "checkbox") field.checked = draft.values[place];
      else field.value = draft.values[place] ?? "";
    });
  } else sessionStorage.removeItem("draft");
  const save = (sent) => {
    const values = [...fields].map((field) => (field.type === "checkbox" ? field.checked : field.value));
    sessionStorage.setItem("draft", JSON.stringify({ talk, sent, values }));
  };
  saying.addEventListener("input", () => save(null));
  saying.addEventListener("submit", () => save(turn()));
}

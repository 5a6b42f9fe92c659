// A phone shows the newest turn above its input line, folds what one knows while the keyboard takes half of the screen,
// and else keeps it as the player left it; without this file a player scrolls and folds.
"use strict";

function showNewest() {
  const turns = document.querySelectorAll("[data-live] .turns li");
  if (turns.length) turns[turns.length - 1].scrollIntoView({ block: "nearest" });
}

for (const place of document.querySelectorAll("[data-live]")) {
  new MutationObserver(showNewest).observe(place, { childList: true });
}
addEventListener("resize", showNewest);
// Each turn loads the page again.
document.querySelectorAll(".know").forEach((known, place) => {
  const name = `${document.querySelector("h1")?.textContent}/${place}`;
  const left = sessionStorage.getItem(name);
  if (left !== null) known.open = left === "open";
  else sessionStorage.setItem(name, known.open ? "open" : "");
  known.firstElementChild.addEventListener("click", () => sessionStorage.setItem(name, known.open ? "" : "open"));
});
for (const words of document.querySelectorAll("[data-line]")) {
  words.addEventListener("focus", () => {
    if (innerHeight >= 600 && !matchMedia("(pointer: coarse)").matches) return;
    for (const known of document.querySelectorAll(".know[open]")) known.open = false;
    showNewest();
  });
}
showNewest();

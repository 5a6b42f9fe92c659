// A phone shows the newest turn above its input line, and folds what one knows while the keyboard takes half of the
// screen; without this file a player scrolls and folds.
"use strict";

function showNewest() {
  const turns = document.querySelectorAll("[data-live] .turns li");
  if (turns.length) turns[turns.length - 1].scrollIntoView({ block: "nearest" });
}

for (const place of document.querySelectorAll("[data-live]")) {
  new MutationObserver(showNewest).observe(place, { childList: true });
}
addEventListener("resize", showNewest);
for (const words of document.querySelectorAll("[data-line]")) {
  words.addEventListener("focus", () => {
    if (innerHeight >= 600 && !matchMedia("(pointer: coarse)").matches) return;
    for (const known of document.querySelectorAll(".know[open]")) known.open = false;
    showNewest();
  });
}
showNewest();

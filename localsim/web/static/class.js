// A phone shows the newest turn above its input line; without this file a player scrolls to it.
"use strict";

function showNewest() {
  const turns = document.querySelectorAll("[data-live] .turns li");
  if (turns.length) turns[turns.length - 1].scrollIntoView({ block: "nearest" });
}

for (const place of document.querySelectorAll("[data-live]")) {
  new MutationObserver(showNewest).observe(place, { childList: true });
}
showNewest();

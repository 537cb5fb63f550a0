/* The story: one step at a time, each with its own view of the player. Nothing is fetched.

   The address says which step is shown (#3), so that a step can be linked to and Back works. Keys: arrows and those of
   a clicker (Page Up, Page Down) go from step to step, Home and End to the first and last, digits to one; space plays
   and pauses, f fills the screen. */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const steps = JSON.parse($("story").textContent);
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const SPEED = 32; // rounds a second
  let view = null;
  let current = -1;

  const buttons = steps.map((step, number) => {
    const button = document.createElement("button");
    button.textContent = String(number + 1);
    button.type = "button";
    button.title = step.title;
    button.setAttribute("aria-label", `Step ${number + 1}: ${step.title}`);
    button.addEventListener("click", () => go(number));
    return button;
  });
  $("steps").append(...buttons);

  /* Shows a step, from its first frame on. */
  const show = (number) => {
    current = number;
    const step = steps[number];
    if (view) view.destroy();
    $("title").textContent = step.title;
    $("text").textContent = step.text;
    // All of a step is on one screen, if that is wide enough.
    const height = Math.max(180, Math.min(560, window.innerHeight * 0.43));
    const options = { height, curves: true, autoplay: !still.matches };
    if (step.document.kind === "run") options.speed = SPEED;
    view = BanditmeshPlayer.mount($("stage"), step.document, options);
    buttons.forEach((button, place) => { if (place === number) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current"); });
    $("back").disabled = number === 0;
    $("next").disabled = number === steps.length - 1;
  };

  const go = (number) => {
    const place = Math.max(0, Math.min(steps.length - 1, number));
    if (place !== current) location.hash = String(place + 1); // which shows it
  };
  const asked = () => {
    const number = Number(location.hash.slice(1)) - 1;
    show(Number.isInteger(number) && steps[number] ? number : 0);
  };
  const fill = () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else if (document.documentElement.requestFullscreen) document.documentElement.requestFullscreen();
  };

  window.addEventListener("hashchange", asked);
  $("back").addEventListener("click", () => go(current - 1));
  $("next").addEventListener("click", () => go(current + 1));
  $("full").addEventListener("click", fill);
  $("full").hidden = !document.fullscreenEnabled;
  // Before the player, whose arrows go from frame to frame.
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = { PageDown: current + 1, PageUp: current - 1 };
    if (event.target.tagName !== "INPUT") Object.assign(moves, { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: steps.length - 1 });
    if (event.key in moves) go(moves[event.key]);
    else if (/^[1-9]$/.test(event.key) && steps[Number(event.key) - 1]) go(Number(event.key) - 1);
    else if (event.key === "f") fill();
    else if (event.key === " " && event.target.tagName !== "BUTTON") view.toggle();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }, true);
  $("page").hidden = location.pathname !== "/story"; // of `banditmesh serve`
  asked();
})();

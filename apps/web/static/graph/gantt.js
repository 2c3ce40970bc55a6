// The line of the present in a time line, and the bars that end there. When the scale is used up, the page's own
// fragment of the time line is asked for again.

function tick(figure) {
  const { began, length } = figure.dataset;
  const share = ((Date.now() - Number(began)) / Number(length)) * 100;
  if (share > 100) {
    renew(figure);
    return;
  }
  const line = figure.querySelector(".now");
  for (const name of ["x1", "x2"]) line?.setAttribute(name, `${share}%`);
  for (const bar of figure.querySelectorAll("rect[data-runs]")) {
    bar.setAttribute("width", `${Math.max(0.2, share - parseFloat(bar.getAttribute("x")))}%`);
  }
}

async function renew(figure) {
  if (figure.asking) return;
  figure.asking = true;
  const answer = await fetch(`${figure.dataset.gantt}?part=1`).catch(() => null);
  figure.asking = false;
  if (!answer?.ok) return;
  const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-gantt]");
  if (found) figure.replaceWith(document.adoptNode(found));
}

// The time line of a plan's page is loaded when it is unfolded.
document.addEventListener("toggle", (event) => {
  const found = event.target.open && event.target.querySelector(":scope > div[data-gantt]");
  if (found) renew(found);
}, true);

setInterval(() => document.querySelectorAll("[data-gantt][data-runs]").forEach(tick), 1000);
let waiting = 0;
document.addEventListener("steps", () => {
  waiting ||= setTimeout(() => {
    waiting = 0;
    document.querySelectorAll("[data-gantt][data-runs]").forEach(renew);
  }, 2000);
});

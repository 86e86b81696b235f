"use strict";
(() => {
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const charts = [...document.querySelectorAll(".chart")].map((place) => ({
    place,
    spec: JSON.parse(document.getElementById(place.id + "-spec").textContent),
    view: null,
  }));
  let drawing = Promise.resolve();

  async function draw(theme) {
    for (const chart of charts) {
      if (chart.view) chart.view.finalize();
      try {
        const options = {
          renderer: "svg", config: themes[theme], defaultStyle: false, tooltip: { disableDefaultStyle: true },
          actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false },
          downloadFileName: chart.place.id,
        };
        chart.view = (await vegaEmbed(chart.place, chart.spec, options)).view;
        await chart.view.runAsync();
        chart.place.classList.remove("failed");
      } catch (error) {
        chart.place.classList.add("failed");
        console.error(chart.place.id, error);
      }
    }
    document.documentElement.dataset.drawn = String(charts.length);
    document.documentElement.dataset.theme = theme;
  }
  const redraw = (theme) => (drawing = drawing.then(() => draw(theme)));

  function sortBy(table, index, button) {
    const head = button.closest("th");
    const down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th").forEach((th) => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = isNaN(x) || isNaN(y) ? x.localeCompare(y, "en", { numeric: true }) : x - y;
      return down ? -order : order;
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(compare));
  }
  document.querySelectorAll("table.sortable").forEach((table) =>
    table.querySelectorAll("thead button").forEach((button, index) =>
      button.addEventListener("click", () => sortBy(table, index, button))));

  redraw(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => redraw(dark.matches ? "dark" : "light"));
  addEventListener("beforeprint", () => redraw("light"));
  addEventListener("afterprint", () => redraw(dark.matches ? "dark" : "light"));
})();

// A list of thousands of rows of which only those in sight are elements. Rows come from the server, a window at a time.

import { make } from "/ui/dom.js";

const ROW = 52;
const SPARE = 20;

export class List {
  // `load(offset, limit)` gives { found, rows }; `show(row)` gives the cells of a row; `moved()` has the list shown anew.
  constructor(label, head, load, show, moved) {
    this.load = load;
    this.show = show;
    this.begun = 0;
    this.space = make("div", { class: "space", role: "rowgroup" });
    const titles = make("div", { role: "rowgroup" }, make("div", { class: "row head", role: "row", "aria-rowindex": 1 }, head));
    titles.firstChild.style.position = "sticky";
    this.box = make("div", { class: "list", role: "table", tabindex: "0", "aria-label": label }, titles, this.space);
    titles.style.position = "sticky";
    titles.style.top = "0";
    titles.style.zIndex = "1";
    let waits = false;
    this.box.addEventListener("scroll", () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => {
        waits = false;
        moved();
      });
    });
  }

  // Asks for the rows in sight and shows them. What comes late is dropped.
  async refresh() {
    const turn = ++this.begun;
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - SPARE);
    const limit = Math.ceil((this.box.clientHeight || 800) / ROW) + 2 * SPARE;
    const { found, rows } = await this.load(first, limit);
    if (turn !== this.begun) return;
    this.box.setAttribute("aria-rowcount", found + 1);
    this.space.style.height = `${found * ROW}px`;
    const focused = this.space.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.space.replaceChildren(...rows.map((row, at) => {
      const line = make("div", { class: "row", role: "row", "aria-rowindex": first + at + 2 }, this.show(row));
      line.style.top = `${(first + at) * ROW}px`;
      return line;
    }));
    if (focused !== null) {
      const again = [...this.space.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused);
      again?.focus({ preventScroll: true });
    }
  }
}

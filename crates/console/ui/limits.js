// What is full, and what was turned away.

import { ask } from "/ui/api.js";
import { count, make, table } from "/ui/dom.js";

export function open(place) {
  const body = make("div", {});
  place.append(body);
  return {
    async refresh() {
      const all = await ask("limits");
      // What was lost comes before all that could be.
      const lost = (one) => Number(one.count === 0);
      const full = (room) => room.most !== null && room.now >= room.most * 0.9;
      body.replaceChildren(
        make("p", {}, "Pressure: ", make("strong", { class: { normal: "good", high: "bad", full: "bad" }[all.pressure] }, all.pressure ?? "not known with --engine=nginx")),
        table("Room", ["What", "Now", "At most", "Beyond it"], all.rooms.map((room) => [
          room.what, make("span", { class: full(room) ? "bad" : "" }, count(room.now)), count(room.most), room.beyond,
        ])),
        make("h2", {}, "Turned away or lost since the start"),
        table("Turned away", ["What", "How often", "Why, and the remedy"], [...all.shed].sort((one, other) => lost(one) - lost(other)).map((one) => [
          one.what, make("span", { class: one.count > 0 ? "bad" : "" }, count(one.count)), one.why,
        ])),
      );
    },
  };
}

// Host, path, Ingress or route, Service and endpoints, each with its traffic; and one route with all that is in force there.

import { ask } from "/ui/api.js";
import { count, facts, latency, make, name, rate, search, table, time } from "/ui/dom.js";
import { List } from "/ui/list.js";

// Backends that need no endpoints.
const NOBODY = new Set(["404", "redirect"]);
// The / that each host has.
const OF_HOST = "of the host itself: no Ingress has it";
const cell = (kind, ...children) => make("span", { role: "cell", class: kind }, ...children);
const head = (text, kind = "") => make("span", { role: "columnheader", class: kind }, text);

function endpoints(row) {
  if (row.external) return "name";
  if (NOBODY.has(row.backend)) return "–";
  return row.draining ? `${row.ready} + ${row.draining}` : String(row.ready);
}

// What is asked for besides the path, and which part of the requests it gets.
function beside(row) {
  const kind = row.kind === "Port" || row.kind === "Host" ? row.protocol : row.regex ? "regular expression" : row.kind;
  return [kind, row.of_host && OF_HOST, row.asks, row.weight && `weight ${row.weight}`, row.listener].filter(Boolean).join(" · ");
}

// What of a route moves by itself.
function traffic({ protocol, traffic }, failed) {
  if (protocol === "TLS") return make("p", { class: "quiet" }, "Connections that are carried on are not counted.");
  if (protocol !== "HTTP") return facts([[protocol === "TCP" ? "Connections a second" : "Sessions a second", rate(traffic.rate)], ["Since the port leads there", count(traffic.requests)]]);
  const failures = Object.entries(traffic.failures ?? {}).map(([status, times]) => `${status}: ${count(times)}`).join(", ");
  return facts([
    ["Requests a second", rate(traffic.rate)],
    ["p50 / p99", `${latency(traffic.p50)} / ${latency(traffic.p99)}`],
    ["5xx since the route is there", failures || "none"],
    ["Last failure seen", traffic.failed ? make("span", {}, `${traffic.failed.status} `, time(traffic.failed.at)) : "–"],
    ["Why a request failed last", failed ? make("span", {}, time(failed.at), " ", name(failed.why)) : "–"],
  ]);
}

// How it goes at each endpoint: counted from the moment that somebody looks at a route.
function eachEndpoint(all) {
  const heads = ["Endpoint", "State", "Tries/s", "Errors/s", "p50", "p99", "Last failure"];
  return table("Endpoints", heads, all.endpoints.map((one) => [
    name(one.address), one.state, rate(one.rate), make("span", { class: one.errors > 0 ? "bad" : "" }, rate(one.errors)), latency(one.p50), latency(one.p99),
    one.failed ? make("span", {}, time(one.failed.at), " ", name(one.failed.why)) : "–",
  ]));
}

// What is in force, each setting with who asks for it: nobody where it comes of what the route belongs to.
function settings(all) {
  return table("Settings", ["Setting", "Value", "Asked for by"], all.settings.map((one) => [
    make("span", {}, name(one.name), make("small", {}, one.field)),
    name(one.value),
    one.asked.length ? make("ul", { class: "tight" }, one.asked.map((by) => make("li", {}, name(by.written === null ? by.key : `${by.key}: ${by.written}`), make("small", {}, name(by.object))))) : "–",
  ]));
}

async function details(dialog, row) {
  const about = { host: row.host, path: row.path, kind: row.kind, ...(row.id && { id: row.id }) };
  const all = await ask("route", about);
  const moving = make("div", {}, traffic(all.route, all.failed));
  const endpointsNow = make("div", {}, eachEndpoint(all));
  dialog.refresh = async () => {
    const next = await ask("route", about);
    moving.replaceChildren(traffic(next.route, next.failed));
    endpointsNow.replaceChildren(eachEndpoint(next));
  };
  dialog.replaceChildren(
    make("h2", { id: "details-title", tabindex: "-1", autofocus: true }, name(`${all.route.host}${all.route.path}`)),
    facts([
      ...(all.route.of_host ? [["Path", OF_HOST]] : []),
      all.route.route ? ["Route", name(all.route.route)] : [all.route.of_host ? "Settings of Ingress" : "Ingress", name(all.route.ingress)],
      ...(all.route.asks ? [["Asks for", name(all.route.asks)]] : []),
      ...(all.route.weight ? [["Weight", all.route.weight]] : []),
      ...(all.route.listener ? [["Listener", name(all.route.listener)]] : []),
      ["Service", name(all.route.service)],
      ["Goes to", name(all.route.backend)],
      ["Certificate", name(all.certificate)],
    ]),
    moving,
    all.problems.length ? make("h2", {}, `Problems of its ${all.route.route ? "route" : "Ingress"}`) : "",
    make("ul", { class: "tight" }, all.problems.map((text) => make("li", {}, name(text)))),
    make("h2", {}, "Endpoints"),
    all.route.external ? make("p", {}, "The addresses of ", name(all.route.external)) : "",
    endpointsNow,
    all.settings.length ? make("h2", {}, "Settings that are not the defaults") : "",
    all.settings.length ? settings(all) : "",
    all.other_annotations.length ? make("h2", {}, "Other annotations of its Ingress") : "",
    make("ul", { class: "tight" }, all.other_annotations.map((text) => make("li", {}, name(text)))),
    all.route.protocol === "HTTP" ? make("p", {}, make("a", { href: `#explain?url=${encodeURIComponent(`${all.certificate ? "https" : "http"}://${all.route.host}${all.route.path}`)}`, click: () => dialog.close() }, "Explain a request to it")) : "",
    make("button", { type: "button", click: () => dialog.close() }, "Close"),
  );
}

export function open(place, query, refresh) {
  let words = query.get("search") ?? "";
  let sort = query.get("sort") ?? "host";
  const number = make("p", { class: "quiet", id: "found", role: "status" });
  const dialog = make("dialog", { "aria-labelledby": "details-title" });
  const show = (row) => [
    cell("", make("a", {
      href: "#routes",
      "data-key": `${row.host} ${row.path} ${row.kind} ${row.id ?? ""}`,
      click: (event) => {
        event.preventDefault();
        details(dialog, row).then(() => dialog.open || dialog.showModal(), (error) => window.alert(error.message));
      },
    }, name(`${row.host}${row.path}`)), make("small", {}, name(beside(row)))),
    cell("", name(row.ingress ?? row.route), make("small", {}, name(row.service ?? row.backend))),
    cell(row.ready || row.external || NOBODY.has(row.backend) ? "number" : "number bad", endpoints(row)),
    cell("number", rate(row.traffic.rate)),
    cell(row.traffic.errors > 0 ? "number bad" : "number", rate(row.traffic.errors)),
    cell("number", latency(row.traffic.p99)),
  ];
  const list = new List("Routes", [
    head("Host and path"), head("Ingress or route, Service"), head("Ready", "number"), head("Req/s", "number"), head("5xx/s", "number"), head("p99", "number"),
  ], async (offset, limit) => {
    const all = await ask("routes", { search: words, sort, offset, limit });
    const text = all.found === all.total ? `${count(all.total)} routes` : `${count(all.found)} of ${count(all.total)} routes`;
    if (number.textContent !== text) number.textContent = text;
    return { found: all.found, rows: all.routes };
  }, show, refresh);
  const order = make("select", { name: "sort", change: (event) => {
    sort = event.target.value;
    list.box.scrollTop = 0;
    refresh();
  } }, [["host", "Host"], ["rate", "Most requests"], ["errors", "Most errors"], ["latency", "Slowest"]].map(([value, text]) => make("option", { value, selected: value === sort }, text)));
  place.append(
    make("form", { role: "search", submit: (event) => event.preventDefault() },
      search("Host, path, namespace, Ingress or route, Service, certificate or address", words, (text) => {
        words = text;
        list.box.scrollTop = 0;
        refresh();
      }),
      make("label", {}, "Order", order)),
    number, list.box, dialog,
  );
  return { refresh: () => Promise.all([list.refresh(), dialog.open && dialog.refresh?.()]) };
}

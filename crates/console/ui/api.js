// Asks the API. The token, where one is needed, stays in this page's memory.

import { make } from "/ui/dom.js";

let token = null;
let asking = null;
let declined = false;

async function refused(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error;
  } catch {
    return text.trim();
  }
}

// Resolves to whether a token was given. Whoever declines is not asked again before the page is loaded anew.
function askForToken(why) {
  return new Promise((done) => {
    const field = make("input", { type: "password", name: "token", required: true, autocomplete: "off" });
    const dialog = make("dialog", { "aria-labelledby": "token-title", cancel: () => { field.value = ""; }, close: () => {
      declined = field.value === "";
      token = declined ? token : field.value.trim();
      dialog.remove();
      done(!declined);
    } },
    make("h2", { id: "token-title" }, "Who may look"),
    make("p", { role: "alert" }, why),
    make("form", { submit: (event) => {
      event.preventDefault();
      dialog.close();
    } }, make("label", { class: "wide" }, "The token of --admin-token-file", field), make("button", {}, "Look"),
    make("button", { type: "button", click: () => {
      field.value = "";
      dialog.close();
    } }, "Leave it")));
    document.body.append(dialog);
    dialog.showModal();
  });
}

async function request(path) {
  for (;;) {
    const shown = token;
    const headers = shown === null ? {} : { "Fairway-Token": shown };
    const response = await fetch(path, { headers, cache: "no-store" }).catch(() => {
      throw new Error("no answer: Fairway has ended, or the way to it (kubectl port-forward)");
    });
    if (response.ok) return response;
    const why = await refused(response);
    if (response.status !== 401 && !(response.status === 403 && shown === null)) throw new Error(why);
    // Another request may have asked for it meanwhile.
    if (token !== shown) continue;
    if (!declined) asking ??= askForToken(why).finally(() => { asking = null; });
    if (declined || !(await asking)) throw new Error(`${why}: load the page anew to give it`);
  }
}

export async function ask(view, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) if (one !== "" && one !== null && one !== undefined) query.append(name, one);
  }
  const path = `/api/v1/${view}${query.size ? `?${query}` : ""}`;
  return (await request(path)).json();
}

// Follows the events until the page goes; whatever ends the stream, it is begun anew.
export async function follow(tell, state) {
  for (;;) {
    try {
      const response = await request("/api/v1/events");
      state("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const event = /^event: (.*)$/m.exec(text.slice(0, end));
          text = text.slice(end + 2);
          if (event) tell(event[1]);
        }
      }
    } catch (error) {
      state(`not live: ${error.message}`);
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}

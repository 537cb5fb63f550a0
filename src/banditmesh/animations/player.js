/* Plays the documents of banditmesh.animations on a canvas. No other script is needed and nothing is ever fetched.

   const view = BanditmeshPlayer.mount(element, document, options);
   options: theme "auto" | "light" | "dark"; colour "regret" | "heard"; arm (its number); speed (frames a second);
            height (of the drawing, in pixels); fill (as high as the window allows); curves (true | false); autoplay;
            round (the one to begin with); loop; compact (only the drawing and one row of controls)
   view.append(frames, notes, run)  view.replace(document, goesOn)  view.set(options)
   view.show(i)  view.play()  view.pause()  view.destroy()  view.state

   A run is shown alone, or beside others on the same network: then the document has `runs`, each with its label and
   frames. With `goesOn`, another document is played from its beginning up to the round that was shown.

   The element sends `bm-frame` (detail: view.state) and `bm-pick` (detail: {agent, name, panel}); it keeps the view as
   element.bmView. Keys: space, left, right, home, end; n and p go from agent to agent, enter picks one.

   In order: helpers, themes and styles; the models, which know what a frame shows (RunModel and RunsModel, MessageModel);
   two painters, which draw it; the view, which holds controls, keys and time. Texts of a document are only ever set as
   textContent: names are the user's. */
"use strict";
(() => {
  // Helpers -----------------------------------------------------------------------------------------------------------

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const clip = (value, low, high) => Math.min(high, Math.max(low, value));
  const count = (n, what) => `${n.toLocaleString("en-GB")} ${what}${n === 1 ? "" : "s"}`;
  const figure = (value) => {
    if (value === 0) return "0";
    if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-GB");
    return String(Number(value.toPrecision(3)));
  };
  const THEMES = {
    light: { back: "#ffffff", text: "#1b1b1b", muted: "#595959", faint: "#d4d4d4", node: "#ffffff", accent: "#0072b2", scheme: "light" },
    dark: { back: "#121212", text: "#e8e8e8", muted: "#b0b0b0", faint: "#3a3f47", node: "#121212", accent: "#56b4e9", scheme: "dark" },
  };
  const SHAPES = {
    relayed: "circle", absorbed: "square", expired: "triangle", stopped: "diamond", queued: "circle",
    duplicate: "cross", lost: "cross",
  };
  const FATES = {
    relayed: "relays it", absorbed: "absorbs it", expired: "gets it as it expires (ttl used up)",
    stopped: "stops it", queued: "would relay it, but the run ends", duplicate: "copy dropped: a duplicate",
    lost: "copy lost on its way",
  };
  const STYLE = `
    .bm { position: relative; font: 14px/1.4 system-ui, sans-serif; color: var(--bm-text); background: var(--bm-back); outline-offset: 3px; }
    .bm * { box-sizing: border-box; }
    .bm [hidden] { display: none !important; }
    .bm-panels { display: flex; flex-wrap: wrap; gap: 8px 16px; }
    .bm-panel { flex: 1 1 300px; min-width: 0; margin: 0; container-type: inline-size; }
    .bm-panel figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 12px; font-weight: 600; padding: 2px 0; overflow-wrap: anywhere; }
    /* Side by side, drawings begin at the same height. */
    @media (min-width: 632px) { @container (max-width: 420px) { .bm-panel figcaption { flex-direction: column; } } }
    .bm-panel canvas { display: block; width: 100%; cursor: pointer; border-radius: 4px; }
    .bm-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; margin: 6px 0; }
    .bm-bar input[type=range] { flex: 1 1 160px; min-width: 100px; accent-color: var(--bm-accent); }
    .bm button, .bm select { font: inherit; color: inherit; background: var(--bm-back); border: 1px solid var(--bm-muted); border-radius: 4px; padding: 3px 10px; min-height: 32px; max-width: min(100%, 18em); }
    .bm button { min-width: 5.5em; }
    .bm button.bm-step { min-width: 2.6em; padding: 3px 6px; }
    .bm-speed { display: flex; align-items: center; gap: 6px; }
    .bm-bar .bm-speed input[type=range] { flex: 0 1 80px; min-width: 60px; }
    .bm-swatch { display: inline-block; width: 1.4em; height: 0; border-top: 3px solid; vertical-align: middle; margin-right: .4em; }
    .bm-count { font-weight: 400; }
    .bm :focus-visible, .bm:focus-visible { outline: 2px solid var(--bm-accent); }
    .bm-count { font-variant-numeric: tabular-nums; }
    .bm-status { min-height: 2.8em; margin: 4px 0; overflow-wrap: anywhere; }
    .bm-status span { display: block; }
    .bm-unseen { position: absolute; width: 1px; height: 1px; min-height: 0; overflow: hidden; clip-path: inset(50%); }
    .bm-legend { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--bm-muted); font-size: 13px; margin: 4px 0; padding: 0; list-style: none; }
    .bm-legend li { display: flex; align-items: center; gap: 6px; }
    .bm-scale { display: inline-block; width: 90px; height: 10px; border-radius: 2px; flex: none; }
    .bm-notes, .bm-log { color: var(--bm-muted); font-size: 13px; margin: 4px 0; overflow-wrap: anywhere; }
    .bm-log summary { display: list-item; cursor: pointer; }
    .bm-log ol { margin: 2px 0; padding-left: 3em; max-height: 12em; overflow: auto; }
    .bm-curves { display: flex; flex-wrap: wrap; align-items: flex-end; gap: 4px 16px; }
    .bm-curves figure { flex: 1 1 200px; margin: 0; min-width: 0; color: var(--bm-muted); font-size: 13px; }
    .bm-curves canvas { display: block; width: 100%; }
    .bm-compact .bm-legend, .bm-compact .bm-notes, .bm-compact .bm-log, .bm-compact select { display: none; }
    .bm-compact .bm-status { min-height: 0; font-size: 13px; }
    .bm-tip { position: absolute; pointer-events: none; z-index: 2; max-width: 16em; padding: 3px 8px; border-radius: 4px; font-size: 13px; background: var(--bm-text); color: var(--bm-back); overflow-wrap: anywhere; white-space: pre-line; }
    .bm-tip[hidden] { display: none; }`;

  /* A colour of a map for a share of the most, from 0 to 1: the same on a light and on a dark page. */
  const colourOf = (map, share) => map[Math.round(clip(share, 0, 1) * (map.length - 1))];
  /* Links take the middle of their map, which can be seen on either. */
  const linkColour = (map, share) => colourOf(map, 0.36 + 0.42 * share);

  /* Whether black is read better than white on a colour. */
  const isBright = (colour) => {
    const [r, g, b] = [1, 3, 5].map((place) => (parseInt(colour.slice(place, place + 2), 16) / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.22;
  };

  // Models ------------------------------------------------------------------------------------------------------------

  const CHECKPOINT = 64;
  /* How many agents of a kind a text names, as journeys.py has it. */
  const MAX_NAMES = 4;
  /* How many seconds another document takes to come to the round that was shown. */
  const CATCH_UP = 0.7;

  /* What one run shows in a frame. Frames are changes, or hold all of their numbers; going back starts from a kept
     state. Frame 0 is before round 1. */
  class RunModel {
    constructor(doc, run) {
      this.doc = doc;
      this.label = run.label;
      this.n = doc.network.names.length;
      this.links = []; // [i, j] of every link that was ever up
      this.numbers = new Map();
      this.frames = [];
      this.most = { regret: 0, load: 0, heard: doc.arms.map(() => 0) };
      const start = { regret: new Float64Array(this.n), heard: doc.arms.map(() => new Float64Array(this.n)), load: [], up: [] };
      for (let k = 0; k < doc.network.links.length; k += 2) start.up[this.link(doc.network.links[k], doc.network.links[k + 1])] = true;
      this.kept = [start];
      this.index = 0;
      this.now = this.copy(start);
      this.append(run.frames);
    }

    link(i, j) {
      const key = i * this.n + j;
      if (!this.numbers.has(key)) {
        this.numbers.set(key, this.links.length);
        this.links.push([i, j]);
      }
      return this.numbers.get(key);
    }

    copy(state) {
      return { regret: state.regret.slice(), heard: state.heard.map((one) => one.slice()), load: state.load.slice(), up: state.up.slice() };
    }

    append(frames) {
      const { most } = this;
      for (const frame of frames) {
        const { agents = [], traffic = [], heard = [], regrets = [], loads = [], back = [] } = frame;
        for (let k = 1; k < agents.length; k += 2) most.regret = Math.max(most.regret, agents[k]);
        for (const regret of regrets) most.regret = Math.max(most.regret, regret);
        for (let k = 2; k < traffic.length; k += 3) most.load = Math.max(most.load, traffic[k] / frame.rounds);
        loads.forEach((load, k) => { most.load = Math.max(most.load, (load + back[k]) / frame.rounds); });
        heard.forEach((changes, arm) => {
          for (let k = 1; k < changes.length; k += 2) most.heard[arm] = Math.max(most.heard[arm], changes[k]);
        });
        this.frames.push(frame);
      }
    }

    /* The state of a frame: on from where we are, or from the last state that was kept before it. */
    at(index) {
      const near = Math.min(Math.floor(index / CHECKPOINT), this.kept.length - 1);
      if (index < this.index || near * CHECKPOINT > this.index) {
        this.index = near * CHECKPOINT;
        this.now = this.copy(this.kept[near]);
      }
      while (this.index < index) {
        this.apply(this.frames[this.index]);
        this.index += 1;
        if (this.index % CHECKPOINT === 0 && this.kept.length === this.index / CHECKPOINT) this.kept.push(this.copy(this.now));
      }
      return this.now;
    }

    apply(frame) {
      const { regret, heard, load, up } = this.now;
      const { agents = [], traffic = [], rounds, up: comes = [], down: goes = [] } = frame;
      for (let k = 0; k < agents.length; k += 2) regret[agents[k]] = agents[k + 1];
      (frame.regrets || []).forEach((value, node) => { regret[node] = value; });
      (frame.heard || []).forEach((changes, arm) => {
        for (let k = 0; k < changes.length; k += 2) heard[arm][changes[k]] = changes[k + 1];
      });
      for (let k = 0; k < traffic.length; k += 3) load[this.link(traffic[k], traffic[k + 1])] = traffic[k + 2] / rounds;
      (frame.loads || []).forEach((n, link) => { load[link] = (n + frame.back[link]) / rounds; });
      for (let k = 0; k < comes.length; k += 2) up[this.link(comes[k], comes[k + 1])] = true;
      for (let k = 0; k < goes.length; k += 2) up[this.link(goes[k], goes[k + 1])] = false;
    }

    /* What was sent in a frame, as [sender, receiver, transmissions per round]; nothing where directions are unknown. */
    sent(index) {
      const frame = this.frames[index - 1];
      const found = [];
      if (!frame) return found;
      for (let k = 0; k < (frame.sent || []).length; k += 3) found.push([frame.sent[k], frame.sent[k + 1], frame.sent[k + 2] / frame.rounds]);
      (frame.loads || []).forEach((n, link) => {
        const [i, j] = this.links[link];
        if (n > 0) found.push([i, j, n / frame.rounds]);
        if (frame.back[link] > 0) found.push([j, i, frame.back[link] / frame.rounds]);
      });
      return found;
    }

    about(index) {
      const frame = this.frames[index - 1];
      return frame
        ? { round: frame.round, regret: frame.regret, messages: frame.messages, rounds: frame.rounds }
        : { round: 0, regret: this.frames.length && this.frames[0].regret === null ? null : 0, messages: 0, rounds: 0 };
    }
  }

  /* One run, or several side by side: a frame for every round that any of them has one for, as far as all are known. */
  class RunsModel {
    constructor(doc) {
      this.doc = doc;
      this.runs = (doc.runs || [doc]).map((run) => new RunModel(doc, run));
      this.settle();
    }

    settle() {
      const known = Math.min(...this.runs.map(({ frames }) => (frames.length ? frames[frames.length - 1].round : 0)));
      const all = new Set(this.runs.flatMap(({ frames }) => frames.map((frame) => frame.round)));
      this.rounds = [...all].filter((round) => round <= known).sort((a, b) => a - b);
      // Which frame of each run belongs to each of these rounds.
      this.places = this.runs.map(({ frames }) => {
        let place = 0;
        return [0, ...this.rounds.map((round) => {
          while (place < frames.length && frames[place].round <= round) place += 1;
          return place;
        })];
      });
      const high = (pick) => Math.max(...this.runs.map((run) => pick(run.most)));
      // The scale of a document that is complete stays as it is; another one grows with what comes.
      this.most = this.doc.scale || { regret: high((one) => one.regret), load: high((one) => one.load), heard: this.doc.arms.map((_, arm) => high((one) => one.heard[arm])) };
    }

    get last() { return this.rounds.length; }

    /* The text of a run names no agent. */
    named() { return []; }

    append(frames, run) { this.runs[run].append(frames); this.settle(); }

    at(index, run) { return this.runs[run].at(this.places[run][index]); }

    sent(index, run) { return this.runs[run].sent(this.places[run][index]); }

    /* The first frame that shows a round, or what comes after it. */
    indexOf(round) {
      const place = this.rounds.findIndex((one) => one >= round);
      return place < 0 ? this.last : round < 1 ? 0 : place + 1;
    }

    about(index) {
      const runs = this.runs.map((run, number) => ({ label: run.label, ...run.about(this.places[number][index]) }));
      return { ...runs[0], round: index === 0 ? 0 : this.rounds[index - 1], runs };
    }

    words(index) {
      const { round, runs } = this.about(index);
      const parts = [`round ${round.toLocaleString("en-GB")} of ${this.doc.horizon.toLocaleString("en-GB")}`];
      for (const { label, regret, messages } of runs) {
        const before = runs.length > 1 ? `${label}: ` : "";
        if (regret !== null) parts.push(`${before}group regret ${figure(regret)}`);
        parts.push(`${regret === null ? before : ""}${count(messages, "transmission")} so far`);
      }
      return [parts.join(", ")];
    }
  }

  /* What a message shows: frame 0 is its origin alone, frame k the k-th round in which a copy arrives in any panel. */
  class MessageModel {
    constructor(doc) {
      this.doc = doc;
      this.rounds = [...new Set(doc.panels.flatMap((panel) => panel.steps.map((step) => step.round)))].sort((a, b) => a - b);
    }

    get last() { return this.rounds.length; }

    /* Of a panel: the steps up to a frame, the one that belongs to it (if any), and how many copies were sent. */
    at(panel, index) {
      const round = index === 0 ? -1 : this.rounds[index - 1];
      const steps = this.doc.panels[panel].steps.filter((step) => step.round <= round);
      const current = steps.length && steps[steps.length - 1].round === round ? steps[steps.length - 1] : null;
      return { steps, current, sent: steps.reduce((sum, step) => sum + step.copies.length, 0) };
    }

    /* The agents that the text of a frame names: the origin, and the first ones of each fate. */
    named(index, panel) {
      const { current } = this.at(panel, index);
      const found = new Map();
      for (const [, receiver, fate, learned] of current ? current.copies : []) {
        const kind = `${fate} ${Boolean(learned)}`;
        if (!found.has(kind)) found.set(kind, new Set());
        if (found.get(kind).size < MAX_NAMES) found.get(kind).add(receiver);
      }
      return [this.doc.origin, ...[...found.values()].flatMap((nodes) => [...nodes])];
    }

    /* Each agent's own part up to a frame: its fate, whether it learned, and when. */
    agents(panel, index) {
      const parts = new Map();
      for (const step of this.at(panel, index).steps) {
        for (const [, receiver, fate, learned] of step.copies) {
          if (fate === "duplicate" || fate === "lost") continue;
          const before = parts.get(receiver);
          parts.set(receiver, { fate, learned: Boolean(learned) || Boolean(before && before.learned), text: step.text.split(":")[0] });
        }
      }
      return parts;
    }

    about(index) {
      const sent = this.doc.panels.map((_, panel) => this.at(panel, index).sent);
      return { round: index === 0 ? 0 : this.rounds[index - 1], regret: null, messages: sent[0], sent };
    }

    words(index) {
      const { origin, network, arm, panels } = this.doc;
      if (index === 0) return [`agent ${network.names[origin]} has pulled arm ${arm} and is about to send what it saw`];
      return panels.map((panel, number) => {
        const { steps, current, sent } = this.at(number, index);
        const text = current ? current.text : `ended${steps.length ? ` with ${steps[steps.length - 1].text.split(":")[0]}` : ""}; ${count(sent, "transmission")} in all`;
        return panels.length > 1 ? `${panel.label}: ${text}` : text;
      });
    }
  }

  // Painters ----------------------------------------------------------------------------------------------------------

  const shape = (pen, kind, x, y, r) => {
    pen.beginPath();
    if (kind === "square") pen.rect(x - r * 0.88, y - r * 0.88, r * 1.76, r * 1.76);
    else if (kind === "triangle") {
      pen.moveTo(x - r * 1.05, y - r * 0.75);
      pen.lineTo(x + r * 1.05, y - r * 0.75);
      pen.lineTo(x, y + r * 1.1);
      pen.closePath();
    } else if (kind === "diamond") {
      pen.moveTo(x, y - r * 1.2);
      pen.lineTo(x + r * 1.2, y);
      pen.lineTo(x, y + r * 1.2);
      pen.lineTo(x - r * 1.2, y);
      pen.closePath();
    } else pen.arc(x, y, r, 0, 2 * Math.PI);
  };

  const cross = (pen, x, y, r, colour, back) => {
    for (const [width, stroke] of [[5, back], [2, colour]]) {
      pen.lineWidth = width;
      pen.strokeStyle = stroke;
      pen.beginPath();
      pen.moveTo(x - r, y - r);
      pen.lineTo(x + r, y + r);
      pen.moveTo(x + r, y - r);
      pen.lineTo(x - r, y + r);
      pen.stroke();
    }
  };

  /* One canvas: where nodes lie on it, and what lies under the pointer. */
  class Painter {
    constructor(view, panel) {
      this.view = view;
      this.panel = panel;
      this.canvas = make("canvas", { role: "img", tabindex: "-1", "data-bm": `canvas-${panel}` });
      this.pen = this.canvas.getContext("2d");
    }

    /* Fit the network into the width that there is; a flat one takes less height. */
    layout(most) {
      const { network } = this.view.doc;
      const n = network.names.length;
      const low = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
      const high = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
      const [x0, x1, y0, y1] = [low(network.x), high(network.x), low(network.y), high(network.y)];
      this.width = Math.max(120, this.canvas.parentElement.clientWidth);
      const flat = (y1 - y0) / Math.max(x1 - x0, 1e-9);
      const margin = n > 40 ? 24 : 36;
      this.height = Math.round(clip(flat * (this.width - 2 * margin) + 2 * margin, 130, most));
      const scale = Math.min((this.width - 2 * margin) / Math.max(x1 - x0, 1e-9), (this.height - 2 * margin) / Math.max(y1 - y0, 1e-9));
      const near = scale * this.gap();
      // Large where there is room for it: between agents it must be seen what goes where.
      this.r = network.sizes ? clip(0.4 * near, 6, 18) : Math.max(clip(0.4 * near, 2, 13), Math.min(18, 0.2 * near));
      this.x = network.x.map((x) => this.width / 2 + (n > 1 ? scale * (x - (x0 + x1) / 2) : 0));
      this.y = network.y.map((y) => this.height / 2 + (n > 1 ? scale * (y - (y0 + y1) / 2) : 0));
      const average = network.sizes && network.sizes.reduce((a, b) => a + b, 0) / n;
      this.radii = network.sizes ? network.sizes.map((size) => this.r * Math.sqrt(size / average)) : null;
      const density = window.devicePixelRatio || 1;
      this.canvas.width = Math.round(this.width * density);
      this.canvas.height = Math.round(this.height * density);
      this.canvas.style.height = `${this.height}px`;
      this.density = density;
      this.labels = null;
    }

    /* How near agents are to their nearest: a quarter of them are nearer than that. */
    gap() {
      const { x, y } = this.view.doc.network;
      if (x.length < 2) return 1;
      const near = x.map((_, i) => {
        let least = Infinity;
        for (let j = 0; j < x.length; j += 1) if (j !== i) least = Math.min(least, (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2);
        return least;
      });
      return Math.sqrt(near.sort((a, b) => a - b)[Math.floor(x.length / 4)]);
    }

    begin() {
      const { pen } = this;
      pen.setTransform(this.density, 0, 0, this.density, 0, 0);
      pen.fillStyle = this.view.theme.back;
      pen.fillRect(0, 0, this.width, this.height);
      pen.setLineDash([]);
      return pen;
    }

    radius(node) { return this.radii ? this.radii[node] : this.r; }

    /* Links of one look, all in one go. */
    strokes(links, colour, width, dash = []) {
      const { pen } = this;
      pen.setLineDash(dash);
      pen.lineWidth = width;
      pen.strokeStyle = colour;
      pen.beginPath();
      for (const [i, j] of links) {
        pen.moveTo(this.x[i], this.y[i]);
        pen.lineTo(this.x[j], this.y[j]);
      }
      pen.stroke();
      pen.setLineDash([]);
    }

    /* Names: within nodes where all fit, else below them, as many as do not overlap each other or another node.
       `fills` has the colour of each node. */
    names(fills) {
      const { pen, view } = this;
      const { names } = view.doc.network;
      pen.textAlign = "center";
      if (names.length > 120) {
        this.someNames();
        return;
      }
      const fits = (size) => {
        pen.font = `${size}px system-ui, sans-serif`;
        return names.every((name) => pen.measureText(name).width <= 2 * this.r - 4);
      };
      if (!this.radii && [this.r > 15 ? 14 : 12, 10].some(fits)) {
        pen.textBaseline = "middle";
        names.forEach((name, node) => {
          // What stands out from a triangle is read against its colour, too.
          pen.lineWidth = 3;
          pen.strokeStyle = fills[node];
          pen.strokeText(name, this.x[node], this.y[node] + 0.5);
          pen.fillStyle = isBright(fills[node]) ? "#000000" : "#ffffff";
          pen.fillText(name, this.x[node], this.y[node] + 0.5);
        });
        return;
      }
      pen.textBaseline = "top";
      pen.font = "12px system-ui, sans-serif";
      if (this.labels === null) {
        this.labels = [];
        const boxes = names.map((_, node) => {
          const r = this.radius(node) + 4;
          return { node, left: this.x[node] - r, right: this.x[node] + r, top: this.y[node] - r, bottom: this.y[node] + r };
        });
        // The largest first: groups are of different sizes.
        const order = names.map((_, node) => node).sort((a, b) => this.radius(b) - this.radius(a));
        order.forEach((node) => {
          const name = names[node];
          const half = pen.measureText(name).width / 2 + 2;
          const x = clip(this.x[node], half, this.width - half);
          const top = this.y[node] + this.radius(node) + 7;
          const box = { node, left: x - half, right: x + half, top, bottom: top + 13 };
          const free = box.bottom < this.height && boxes.every((other) => other.node === node || other.right < box.left || other.left > box.right || other.bottom < box.top || other.top > box.bottom);
          if (free && half * 2 < this.width) {
            boxes.push({ ...box, node: -1 });
            this.labels.push([name, x, top]);
          }
        });
        // A few names of many would look as if they meant something.
        if (this.labels.length < 0.7 * names.length) this.labels = [];
      }
      if (!this.labels.length) this.someNames();
      for (const [name, x, y] of this.labels) {
        pen.lineWidth = 3;
        pen.strokeStyle = view.theme.back;
        pen.strokeText(name, x, y);
        pen.fillStyle = view.theme.text;
        pen.fillText(name, x, y);
      }
    }

    /* Where there is no room for all names, those that the text below the drawing mentions. */
    someNames() {
      const { pen, view } = this;
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "top";
      const taken = [];
      for (const node of view.model.named(view.index, this.panel)) {
        const name = view.doc.network.names[node];
        const half = pen.measureText(name).width / 2 + 2;
        const [x, y] = [clip(this.x[node], half, this.width - half), Math.min(this.y[node] + this.radius(node) + 3, this.height - 14)];
        if (taken.some((box) => Math.abs(box[0] - x) < box[2] + half && Math.abs(box[1] - y) < 13)) continue;
        taken.push([x, y, half]);
        pen.lineWidth = 3;
        pen.strokeStyle = view.theme.back;
        pen.strokeText(name, x, y);
        pen.fillStyle = view.theme.text;
        pen.fillText(name, x, y);
      }
    }

    /* A ring around a node: small around a small one. */
    ringed(node, colour, gap, width) {
      const { pen } = this;
      const scale = clip(this.r / 10, 0.4, 1);
      pen.beginPath();
      pen.arc(this.x[node], this.y[node], this.radius(node) + gap * scale, 0, 2 * Math.PI);
      pen.lineWidth = width * scale;
      pen.strokeStyle = colour;
      pen.stroke();
    }

    /* The node under a point, or -1. */
    nodeAt(x, y) {
      let best = -1;
      let nearest = Infinity;
      for (let node = 0; node < this.x.length; node += 1) {
        const far = Math.hypot(this.x[node] - x, this.y[node] - y);
        if (far <= this.radius(node) + 5 && far < nearest) [best, nearest] = [node, far];
      }
      return best;
    }

    linkAt(x, y, links) {
      for (const [number, [i, j]] of links.entries()) {
        const [dx, dy] = [this.x[j] - this.x[i], this.y[j] - this.y[i]];
        const along = clip(((x - this.x[i]) * dx + (y - this.y[i]) * dy) / (dx * dx + dy * dy || 1), 0, 1);
        if (Math.hypot(this.x[i] + along * dx - x, this.y[i] + along * dy - y) < 4) return number;
      }
      return -1;
    }
  }

  class RunPainter extends Painter {
    draw(index, phase) {
      const { view } = this;
      const { theme, options, doc } = view;
      const { most } = view.model;
      const model = view.model.runs[this.panel];
      const state = view.model.at(index, this.panel);
      const pen = this.begin();
      const maps = doc.palette.maps;
      const looks = new Map();
      model.links.forEach((link, number) => {
        if (!state.up[number]) return;
        const load = state.load[number] || 0;
        const level = load > 0 && most.load > 0 ? 1 + Math.round(Math.min(1, load / most.load) * 8) : 0;
        if (!looks.has(level)) looks.set(level, []);
        looks.get(level).push(link);
      });
      const thin = model.links.length > 1000 ? 0.5 : 1;
      // Between groups there are many links: what carries little steps back, so that the rest can be seen.
      const wide = doc.network.sizes ? 2.2 : thin;
      for (const level of [...looks.keys()].sort((a, b) => a - b)) {
        pen.globalAlpha = doc.network.sizes ? 0.25 + 0.75 * (level / 9) : 1;
        this.strokes(looks.get(level), level === 0 ? theme.faint : linkColour(maps.inferno, (level - 1) / 8), (0.75 + level * 0.35) * wide);
      }
      pen.globalAlpha = 1;
      if (phase < 1) this.moving(index, phase, most.load);
      const values = view.values(state);
      const high = view.mostOf();
      const holders = options.colour === "heard" ? new Set(doc.holders[options.arm]) : new Set();
      const fills = [];
      for (let node = 0; node < model.n; node += 1) {
        const r = this.radius(node);
        shape(pen, "circle", this.x[node], this.y[node], r);
        fills[node] = values ? colourOf(maps.viridis, high > 0 ? values[node] / high : 0) : doc.palette.fates.relayed;
        pen.fillStyle = fills[node];
        pen.fill();
        pen.lineWidth = 1;
        pen.strokeStyle = theme.muted;
        if (r > 3) pen.stroke();
        if (holders.has(node)) this.ringed(node, doc.palette.learned, 3, 2);
      }
      if (view.chosen >= 0) this.ringed(view.chosen, theme.text, 4, 2);
      this.names(fills);
    }

    /* What is sent in a frame, on its way: one dot for all messages between two agents, larger for more. */
    moving(index, phase, most) {
      const { pen, view } = this;
      const near = clip(this.r / 8, 0.4, 1);
      pen.fillStyle = view.theme.text;
      pen.strokeStyle = view.theme.back;
      pen.lineWidth = 1;
      for (const [i, j, n] of view.model.sent(index, this.panel)) {
        const [dx, dy] = [this.x[j] - this.x[i], this.y[j] - this.y[i]];
        const long = Math.hypot(dx, dy) || 1;
        // Each direction keeps to its right.
        const aside = Math.min(4, this.r * 0.4);
        const [x, y] = [this.x[i] + dx * phase - (dy / long) * aside, this.y[i] + dy * phase + (dx / long) * aside];
        pen.beginPath();
        pen.arc(x, y, (2 + 3 * Math.sqrt(Math.min(1, n / (most || 1)))) * near, 0, 2 * Math.PI);
        pen.fill();
        pen.stroke();
      }
    }

    tip(node) {
      const { view } = this;
      const { doc, model, options } = view;
      const state = model.at(view.index, this.panel);
      const { names, sizes } = doc.network;
      const lines = [sizes ? `${names[node]}: ${count(sizes[node], "agent")}, means` : `agent ${names[node]}`];
      if (doc.has_regret) lines.push(`regret so far: ${figure(state.regret[node])}`);
      if (doc.arms.length) {
        if (!sizes) lines.push(`${doc.holders[options.arm].includes(node) ? "has" : "does not have"} arm ${doc.arms[options.arm]}`);
        lines.push(`has learned from ${figure(state.heard[options.arm][node])} of its holders`);
      }
      return lines.join("\n");
    }

    tipAt(x, y) {
      const { model, doc, index } = this.view;
      const { links } = model.runs[this.panel];
      const state = model.at(index, this.panel);
      const number = this.linkAt(x, y, links.map((link, place) => (state.up[place] ? link : [link[0], link[0]])));
      if (number < 0) return null;
      const [i, j] = links[number];
      return `${doc.network.names[i]} – ${doc.network.names[j]}\n${figure(state.load[number] || 0)} transmissions per round`;
    }
  }

  class MessagePainter extends Painter {
    /* `phase` is how far the copies of this frame have come, from 0 to 1. */
    draw(index, phase) {
      const { view, panel } = this;
      const { doc, model, theme } = view;
      const { fates, learned } = doc.palette;
      const pen = this.begin();
      const { steps, current } = model.at(panel, index);
      const seen = (current || steps[steps.length - 1] || {}).links;
      const flat = seen || doc.network.links;
      const links = [];
      for (let k = 0; k < flat.length; k += 2) links.push([flat[k], flat[k + 1]]);
      this.strokes(links, theme.faint, links.length > 1000 ? 0.5 : 1.25);
      const before = steps.filter((step) => step !== current).flatMap((step) => step.copies);
      for (const fate of Object.keys(fates)) {
        this.copies(fate, before.filter((copy) => copy[2] === fate), 1, false);
      }
      for (const fate of Object.keys(fates)) {
        if (current) this.copies(fate, current.copies.filter((copy) => copy[2] === fate), phase, true);
      }
      const parts = model.agents(panel, phase < 1 && current ? index - 1 : index);
      const holders = new Set(doc.holders);
      const fills = [];
      for (let node = 0; node < doc.network.names.length; node += 1) {
        const part = parts.get(node);
        const isOrigin = node === doc.origin;
        fills[node] = isOrigin ? theme.text : part ? fates[part.fate] : theme.node;
        shape(pen, !isOrigin && part ? SHAPES[part.fate] : "circle", this.x[node], this.y[node], isOrigin ? Math.max(5, this.r) : this.r);
        pen.fillStyle = fills[node];
        pen.fill();
        pen.lineWidth = 1.5;
        pen.strokeStyle = part || isOrigin ? theme.back : theme.muted;
        pen.stroke();
        if (holders.has(node)) this.ringed(node, (part && part.learned) || isOrigin ? learned : theme.muted, 3.5, part && part.learned ? 3 : 1.5);
      }
      if (view.chosen >= 0) this.ringed(view.chosen, theme.text, 6, 1.5);
      this.names(fills);
    }

    /* Copies of one fate in one go: lines, and what is at their ends. `phase` is how far they have come. */
    copies(fate, list, phase, isCurrent) {
      const { pen, view } = this;
      const { theme, doc } = view;
      const ends = fate === "duplicate" || fate === "lost";
      const colour = doc.palette.fates[fate];
      const lines = new Path2D();
      const heads = new Path2D();
      const tips = [];
      for (const [sender, receiver] of list) {
        const [ax, ay, bx, by] = [this.x[sender], this.y[sender], this.x[receiver], this.y[receiver]];
        const long = Math.hypot(bx - ax, by - ay) || 1;
        const stop = Math.max(0, long - this.r - 6);
        const goes = phase * (fate === "lost" ? Math.min(stop, long * 0.5) : stop);
        const [x, y] = [ax + ((bx - ax) * goes) / long, ay + ((by - ay) * goes) / long];
        lines.moveTo(ax, ay);
        lines.lineTo(x, y);
        tips.push([x, y]);
        if (ends || phase < 1 || long <= 3 * this.r) continue;
        const turn = Math.atan2(by - ay, bx - ax);
        const size = (isCurrent ? 9 : 7) * clip(this.r / 8, 0.5, 1);
        heads.moveTo(x + 3 * Math.cos(turn), y + 3 * Math.sin(turn));
        heads.lineTo(x - size * Math.cos(turn - 0.5), y - size * Math.sin(turn - 0.5));
        heads.lineTo(x - size * Math.cos(turn + 0.5), y - size * Math.sin(turn + 0.5));
        heads.closePath();
      }
      // Very many dashes would take longer to draw than anyone wants to wait.
      const many = list.length > 400;
      pen.setLineDash(ends && !many ? [5, 4] : []);
      pen.lineWidth = (isCurrent ? 3 : 1.75) * (many ? 0.4 : 1);
      pen.globalAlpha = isCurrent ? 1 : 0.6;
      pen.strokeStyle = colour;
      pen.stroke(lines);
      pen.setLineDash([]);
      pen.fillStyle = colour;
      pen.fill(heads);
      if (phase < 1) {
        pen.beginPath();
        const r = clip(this.r * 0.45, 2, 5);
        for (const [x, y] of tips) {
          pen.moveTo(x + r, y);
          pen.arc(x, y, r, 0, 2 * Math.PI);
        }
        pen.fillStyle = theme.text;
        pen.fill();
      } else if (ends && !many) for (const [x, y] of tips) cross(pen, x, y, clip(this.r * 0.4, 2, 4.5), theme.muted, theme.back);
      pen.globalAlpha = 1;
    }

    tip(node) {
      const { doc, model, index } = this.view;
      const part = model.agents(this.panel, index).get(node);
      const lines = [`agent ${doc.network.names[node]}`, `${doc.holders.includes(node) ? "has" : "does not have"} arm ${doc.arm}`];
      if (node === doc.origin) lines.push("the message is its own");
      else if (part) lines.push(`${part.text}: ${FATES[part.fate]}`, part.learned ? "learned from it" : "did not learn from it");
      else lines.push("has not got the message");
      return lines.join("\n");
    }

    tipAt() { return null; }
  }

  // The view ----------------------------------------------------------------------------------------------------------

  class View {
    constructor(element, doc, options) {
      this.element = element;
      this.options = { theme: "auto", colour: "regret", arm: 0, height: 420, fill: false, curves: false, autoplay: false, loop: false, compact: false, ...options };
      this.dark = window.matchMedia("(prefers-color-scheme: dark)");
      this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
      this.repaint = () => this.paint();
      this.dark.addEventListener("change", this.repaint);
      // Drawing changes the height, which must not be a reason to draw again.
      this.sizes = new ResizeObserver(() => { if (this.root.clientWidth !== this.width) this.resize(); });
      this.frame = null;
      this.build(doc);
      element.bmView = this;
      if (this.options.round) this.show(this.model.indexOf(this.options.round));
      if (this.options.autoplay && !this.still.matches) this.play();
    }

    get theme() {
      const { theme } = this.options;
      return THEMES[theme === "auto" ? (this.dark.matches ? "dark" : "light") : theme] || THEMES.light;
    }

    get speed() { return this.options.speed || (this.doc.kind === "message" ? 0.8 : 8); }

    get state() {
      const about = this.model.about(this.index);
      return { kind: this.doc.kind, frame: this.index, nFrames: this.model.last, playing: this.frame !== null, status: this.model.words(this.index).join(" | "), ...about };
    }

    // What is there of the page

    build(doc) {
      if (!doc || doc.format !== "banditmesh-animation" || doc.version !== 1) throw new Error("BanditmeshPlayer needs a document of banditmesh.animations, version 1");
      this.pause();
      this.legendOf = null;
      this.curves = null;
      this.doc = doc;
      this.index = 0;
      this.phase = 1;
      this.chosen = -1;
      const isRun = doc.kind === "run";
      this.model = isRun ? new RunsModel(doc) : new MessageModel(doc);
      this.goal = null;
      if (!isRun || !doc.has_regret) this.options.colour = isRun && doc.arms.length ? "heard" : this.options.colour;
      this.options.arm = clip(this.options.arm || 0, 0, Math.max(0, (doc.arms || []).length - 1));
      this.root = make("div", { class: "bm", tabindex: "0", role: "group", "aria-label": "Animation. Space plays and pauses, arrow keys step, home and end go to the first and last frame, n and p choose agents." });
      this.root.append(make("style", {}, STYLE));
      this.root.classList.toggle("bm-compact", this.options.compact);
      const Kind = isRun ? RunPainter : MessagePainter;
      const panels = make("div", { class: "bm-panels" });
      this.painters = (isRun ? this.model.runs : doc.panels).map((panel, number) => {
        const painter = new Kind(this, number);
        const sent = make("span", { class: "bm-count", "data-bm": `sent-${number}` });
        const name = make("span", {}, panel.label);
        const caption = make("figcaption", {}, name, sent);
        if (isRun && doc.runs) name.prepend(this.swatch(number));
        if (isRun && !doc.runs) caption.hidden = true;
        painter.sent = sent;
        panels.append(make("figure", { class: "bm-panel" }, caption, painter.canvas));
        this.watch(painter);
        return painter;
      });
      // The numbers of a run are beside the slider already.
      this.status = make("p", { class: isRun ? "bm-unseen" : "bm-status", "data-bm": "status", "aria-live": "polite" });
      this.legend = make("ul", { class: "bm-legend", "data-bm": "legend" });
      this.notes = make("p", { class: "bm-notes", "data-bm": "notes" });
      this.hint = make("div", { class: "bm-tip", role: "status" });
      this.hint.hidden = true;
      this.root.append(panels, this.bar(), this.status, this.legend);
      if (isRun && this.options.curves) this.root.append(this.curveBox());
      if (!isRun) this.root.append(...this.logs());
      this.root.append(this.notes, this.hint);
      this.root.addEventListener("keydown", (event) => this.key(event));
      this.element.replaceChildren(this.root);
      this.tell(doc.notes);
      this.sizes.disconnect();
      this.sizes.observe(this.root);
      this.resize();
      this.announce();
    }

    bar() {
      this.button = make("button", { type: "button", "data-bm": "play" });
      this.button.addEventListener("click", () => this.toggle());
      this.slider = make("input", { type: "range", min: "0", step: "1", "data-bm": "slider", "aria-label": this.doc.kind === "run" ? "round" : "hop" });
      this.slider.addEventListener("input", () => { this.pause(); this.show(Number(this.slider.value)); });
      const step = (by, sign, words) => {
        const one = make("button", { type: "button", class: "bm-step", "aria-label": words, title: words, "data-bm": by < 0 ? "back" : "step" }, sign);
        one.addEventListener("click", () => { this.pause(); this.show(this.index + by); });
        return one;
      };
      const what = this.doc.kind === "run" ? "round" : "hop";
      const bar = make("div", { class: "bm-bar" }, step(-1, "◀", `one ${what} back`), this.button, step(1, "▶", `one ${what} on`), this.slider);
      this.readings = {};
      if (this.doc.kind === "run") {
        const box = make("span", { class: "bm-count" });
        for (const [name, before] of [["round", "round "], ["regret", " · group regret (reward) "], ["messages", " · transmissions "]]) {
          this.readings[name] = make("span", { "data-bm": name });
          const isKnown = name === "round" || (!this.doc.runs && (name !== "regret" || this.doc.has_regret));
          if (isKnown) box.append(before, this.readings[name]);
        }
        bar.append(box, this.speedBox());
        this.addChoices(bar);
      }
      return bar;
    }

    /* How fast it plays, by itself: nothing else changes. */
    speedBox() {
      const input = make("input", { type: "range", min: "0", max: "7", step: "1", "data-bm": "speed", "aria-label": "speed" });
      const words = make("span", { class: "bm-count" });
      const tell = () => {
        words.textContent = `${this.speed} a second`;
        input.setAttribute("aria-valuetext", `${this.speed} rounds a second`);
      };
      input.value = String(Math.round(Math.log2(this.speed)));
      input.addEventListener("input", () => { this.options.speed = 2 ** Number(input.value); tell(); });
      tell();
      return make("label", { class: "bm-speed" }, "speed", input, words);
    }

    /* A run's colour in the curves; black turns into that of text. */
    colour(run) {
      const { colour } = (this.doc.runs || [])[run] || {};
      return colour === "#000000" ? this.theme.text : colour;
    }

    swatch(run) {
      const mark = make("span", { class: "bm-swatch" });
      mark.style.borderColor = this.colour(run);
      mark.style.borderTopStyle = run % 2 ? "dashed" : "solid";
      return mark;
    }

    addChoices(bar) {
      const { doc } = this;
      const choices = [];
      if (doc.has_regret) choices.push(["regret", 0, "colour: regret"]);
      doc.arms.forEach((arm, number) => choices.push(["heard", number, `colour: heard of arm ${arm}`]));
      this.select = null;
      if (choices.length < 2) return;
      this.choices = choices;
      this.select = make("select", { "data-bm": "colour", "aria-label": "what the colour of agents shows" });
      choices.forEach(([, , text], number) => this.select.append(make("option", { value: String(number) }, text)));
      this.choice();
      this.select.addEventListener("change", () => {
        const [colour, arm] = choices[Number(this.select.value)];
        this.set({ colour, arm });
      });
      bar.append(this.select);
    }

    /* The choice that the options are. */
    choice() {
      const { colour, arm } = this.options;
      if (this.select) this.select.value = String(this.choices.findIndex((one) => one[0] === colour && (colour === "regret" || one[1] === arm)));
    }

    curveBox() {
      this.curves = [["regret", "group regret (reward)"], ["messages", "transmissions"]]
        .filter(([key]) => key !== "regret" || this.model.about(1).regret !== null)
        .map(([key, words]) => ({ key, words, caption: make("figcaption"), canvas: make("canvas", { role: "img", "aria-label": `${words} over rounds` }) }));
      return make("div", { class: "bm-curves" }, ...this.curves.map(({ caption, canvas }) => make("figure", {}, caption, canvas)));
    }

    /* Every copy in words, for those who do not see the picture. */
    logs() {
      const { names } = this.doc.network;
      return this.doc.panels.map((panel, number) => {
        const list = make("ol", { "data-bm": `log-${number}` });
        panel.steps.forEach((step) => step.copies.forEach(([sender, receiver, fate, learned]) => {
          const item = make("li", { "data-fate": fate, "data-sender": names[sender], "data-receiver": names[receiver] });
          item.textContent = `${step.text.split(":")[0]}: ${names[sender]} to ${names[receiver]}: ${fate}${learned ? ", learned" : ""}`;
          list.append(item);
        }));
        const box = make("details", { class: "bm-log" }, make("summary", {}, `All copies, ${panel.label}`), list);
        return box;
      });
    }

    watch(painter) {
      const { canvas } = painter;
      const at = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      canvas.addEventListener("pointermove", (event) => {
        const [x, y] = at(event);
        const node = painter.nodeAt(x, y);
        this.showTip(painter, node >= 0 ? painter.tip(node) : painter.tipAt(x, y), x, y);
      });
      canvas.addEventListener("pointerleave", () => { this.hint.hidden = true; });
      canvas.addEventListener("click", (event) => {
        const node = painter.nodeAt(...at(event));
        if (node < 0) return;
        this.chosen = node;
        this.paint();
        this.pick(node, painter.panel);
      });
    }

    showTip(painter, text, x, y) {
      this.hint.hidden = text === null;
      if (text === null) return;
      this.hint.textContent = text;
      const [box, outer] = [painter.canvas.getBoundingClientRect(), this.root.getBoundingClientRect()];
      const left = box.left - outer.left + x + 14;
      this.hint.style.left = `${clip(left, 0, Math.max(0, outer.width - this.hint.offsetWidth - 2))}px`;
      const top = box.top - outer.top + y + 14;
      this.hint.style.top = `${Math.min(top, Math.max(0, outer.height - this.hint.offsetHeight - 2))}px`;
    }

    pick(agent, panel) { this.send("bm-pick", { agent, name: this.doc.network.names[agent], panel }); }

    send(name, detail) { this.element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true })); }

    tell(notes) { this.notes.textContent = (notes || []).map((note) => `Note: ${note}.`).join(" "); this.notes.hidden = !(notes || []).length; }

    // What the colour of agents shows

    values(state) {
      if (this.options.colour === "heard" && this.doc.arms.length) return state.heard[this.options.arm];
      return this.doc.has_regret ? state.regret : null;
    }

    mostOf() { return this.options.colour === "heard" ? this.model.most.heard[this.options.arm] : this.model.most.regret; }

    drawLegend() {
      const { doc, theme, options } = this;
      const items = [];
      const item = (mark, text) => items.push(make("li", {}, mark, make("span", {}, text)));
      if (doc.kind === "run") {
        const scale = (map, colours) => {
          const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => colours(map, share));
          const mark = make("span", { class: "bm-scale" });
          mark.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
          return mark;
        };
        const mean = doc.network.sizes ? ", mean of a group" : "";
        if (options.colour === "heard" && doc.arms.length) {
          item(scale(doc.palette.maps.viridis, colourOf), `holders of arm ${doc.arms[options.arm]} that an agent has learned from, 0 to ${figure(this.mostOf())}${mean}`);
          item(this.mark("circle", "none", doc.palette.learned), `has arm ${doc.arms[options.arm]}`);
        } else if (doc.has_regret) item(scale(doc.palette.maps.viridis, colourOf), `an agent's regret so far, 0 to ${figure(this.mostOf())} (reward)${mean}`);
        item(scale(doc.palette.maps.inferno, linkColour), `transmissions per round on a link, 0 to ${figure(this.model.most.load)}; grey: none`);
      } else {
        item(this.mark("circle", theme.text, theme.text), `origin: agent ${doc.network.names[doc.origin]}`);
        item(this.mark("circle", "none", theme.muted), `ring: has arm ${doc.arm}`);
        item(this.mark("circle", "none", doc.palette.learned, 2.5), "learned from it");
        const used = new Set(doc.panels.flatMap((panel) => panel.steps.flatMap((step) => step.copies.map((copy) => copy[2]))));
        for (const [fate, words] of Object.entries(FATES)) if (used.has(fate)) item(this.mark(SHAPES[fate], doc.palette.fates[fate], doc.palette.fates[fate]), words);
      }
      this.legend.replaceChildren(...items);
    }

    /* A node as the legend shows it. */
    mark(kind, fill, stroke, width = 1.5) {
      const density = window.devicePixelRatio || 1;
      const canvas = make("canvas", { width: String(18 * density), height: String(18 * density), style: "width:18px;height:18px;flex:none", "aria-hidden": "true" });
      const pen = canvas.getContext("2d");
      pen.scale(density, density);
      if (kind === "cross") {
        cross(pen, 9, 9, 4, this.theme.muted, this.theme.back);
        return canvas;
      }
      shape(pen, kind, 9, 9, 6);
      pen.fillStyle = fill;
      if (fill !== "none") pen.fill();
      pen.lineWidth = width;
      pen.strokeStyle = stroke;
      pen.stroke();
      return canvas;
    }

    // Time

    toggle() { if (this.frame !== null) this.pause(); else this.play(); }

    play() {
      if (this.frame !== null || this.model.last === 0) return;
      if (this.index >= this.model.last) this.show(0);
      let last = performance.now();
      let due = 0;
      const tick = (now) => {
        // A page that was out of sight goes on where it was.
        const rushes = this.goal !== null;
        due += Math.min(0.25, (now - last) / 1000) * (rushes ? Math.max(this.speed, this.goal / CATCH_UP) : this.speed);
        last = now;
        const isMessage = this.doc.kind === "message";
        const tweens = !this.still.matches && (isMessage || (!rushes && this.moves));
        if (due >= 1 && this.index < this.model.last) {
          const steps = Math.min(Math.floor(due), (rushes ? this.goal : this.model.last) - this.index);
          due = rushes && this.index + steps >= this.goal ? 0 : due - steps;
          this.phase = tweens ? 0 : 1;
          this.show(this.index + steps, this.phase);
        } else if (tweens && this.phase < 1) {
          this.phase = Math.min(1, due * (isMessage ? 1.6 : 1.1));
          this.paint(this.phase);
        }
        if (rushes && this.index >= this.goal) {
          this.goal = null;
          if (this.halts) this.pause();
          else this.frame = requestAnimationFrame(tick);
          return;
        }
        const isOver = this.index >= this.model.last && (this.phase >= 1 || !tweens);
        // The last frame stays for a moment before it begins again.
        if (isOver && this.options.loop && due >= 1.5 * this.speed) { due = 0; this.show(0); }
        if (isOver && !this.options.loop) this.pause();
        else this.frame = requestAnimationFrame(tick);
      };
      // The first step comes at once.
      due = 1;
      this.frame = requestAnimationFrame(tick);
      this.label();
    }

    /* Whether messages are seen on their way: not if there are very many, or if they would only flicker. */
    get moves() { return this.doc.kind === "run" && this.doc.network.links.length <= 1200 && this.speed <= 8; }

    pause() {
      this.goal = null;
      if (this.frame != null) cancelAnimationFrame(this.frame);
      const played = this.frame !== null;
      this.frame = null;
      if (!played || !this.model) return;
      this.phase = 1;
      this.paint();
      this.label();
      this.announce();
    }

    show(index, phase = 1) {
      this.index = clip(Math.round(index) || 0, 0, this.model.last);
      this.phase = phase;
      this.paint(phase);
      this.announce();
    }

    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const { tagName } = event.target;
      const onSlider = event.target === this.slider;
      const moves = { ArrowRight: this.index + 1, ArrowLeft: this.index - 1, Home: 0, End: this.model.last };
      if (event.key === " " && (onSlider || !["BUTTON", "SELECT", "SUMMARY"].includes(tagName))) this.toggle();
      else if (event.key in moves && tagName !== "SELECT") { this.pause(); this.show(moves[event.key]); }
      else if ((event.key === "n" || event.key === "p") && tagName !== "SELECT") this.choose(event.key === "n" ? 1 : -1);
      else if (event.key === "Enter" && this.chosen >= 0 && event.target === this.root) this.pick(this.chosen, 0);
      else return;
      event.preventDefault();
    }

    choose(step) {
      const n = this.doc.network.names.length;
      this.chosen = this.chosen < 0 ? (step > 0 ? 0 : n - 1) : (this.chosen + step + n) % n;
      this.paint();
      const painter = this.painters[0];
      this.showTip(painter, painter.tip(this.chosen), painter.x[this.chosen], painter.y[this.chosen]);
    }

    // What changes from frame to frame

    resize() {
      const width = this.root.clientWidth;
      this.width = width;
      if (width === 0) return;
      const high = this.options.fill ? clip(window.innerHeight * 0.62, 240, 720) : this.options.height;
      // Panels that lie below each other share the height, so that the controls stay in sight.
      const share = this.doc.network.names.length > 12 ? 0.8 : 0.55;
      const most = this.painters.length > 1 && width < 616 ? Math.max(150, high * share) : high;
      for (const painter of this.painters) painter.layout(Math.min(most, Math.max(220, width)));
      this.paint();
    }

    paint(phase = this.phase) {
      const { theme } = this;
      for (const [name, value] of [["text", theme.text], ["back", theme.back], ["muted", theme.muted], ["accent", theme.accent]]) this.root.style.setProperty(`--bm-${name}`, value);
      this.root.style.colorScheme = theme.scheme;
      for (const painter of this.painters) if (painter.width) painter.draw(this.index, phase);
      this.drawCurves();
      this.label();
      const legend = JSON.stringify([theme.back, this.options.colour, this.options.arm, this.model.most]);
      if (legend !== this.legendOf) { this.legendOf = legend; this.drawLegend(); }
    }

    drawCurves() {
      if (this.doc.kind !== "run") return;
      const { runs } = this.model;
      const round = this.model.about(this.index).round;
      for (const { key, words, caption, canvas } of this.curves || []) {
        const density = window.devicePixelRatio || 1;
        const [width, height] = [canvas.clientWidth, runs.length > 1 ? 96 : 56];
        if (!width) continue;
        canvas.width = width * density;
        canvas.height = height * density;
        canvas.style.height = `${height}px`;
        const pen = canvas.getContext("2d");
        pen.scale(density, density);
        const most = Math.max(...runs.map(({ frames }) => frames.reduce((high, frame) => Math.max(high, frame[key]), 0))) || 1;
        const x = (at) => 2 + ((width - 4) * at) / this.doc.horizon;
        const y = (value) => height - 3 - ((height - 8) * value) / most;
        pen.strokeStyle = this.theme.faint;
        pen.strokeRect(0.5, 0.5, width - 1, height - 1);
        pen.lineWidth = 2;
        runs.forEach(({ frames }, run) => {
          const now = this.model.places[run][this.index];
          pen.strokeStyle = this.colour(run) || this.doc.palette.fates[key === "regret" ? "absorbed" : "relayed"];
          pen.setLineDash(run % 2 ? [6, 4] : []);
          // What is still to come is pale.
          for (const [from, to, alpha] of [[0, now, 1], [now, frames.length, this.theme.scheme === "dark" ? 0.6 : 0.35]]) {
            pen.globalAlpha = alpha;
            pen.beginPath();
            pen.moveTo(x(from ? frames[from - 1].round : 0), y(from ? frames[from - 1][key] : 0));
            for (let k = from; k < to; k += 1) pen.lineTo(x(frames[k].round), y(frames[k][key]));
            pen.stroke();
          }
        });
        pen.globalAlpha = 1;
        pen.setLineDash([]);
        pen.strokeStyle = this.theme.muted;
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(x(round), 2);
        pen.lineTo(x(round), height - 2);
        pen.stroke();
        caption.textContent = `${words} over rounds, 0 to ${figure(most)}`;
      }
    }

    /* Buttons and numbers. */
    label() {
      if (!this.button) return;
      const { model, index } = this;
      const about = model.about(index);
      this.button.textContent = this.frame !== null ? "Pause" : index >= model.last && model.last ? "Again" : "Play";
      this.button.disabled = model.last === 0;
      this.slider.max = String(model.last);
      this.slider.value = String(index);
      this.slider.setAttribute("aria-valuetext", model.words(index).join(", "));
      if (this.doc.kind === "run") {
        this.readings.round.textContent = `${about.round.toLocaleString("en-GB")} of ${this.doc.horizon.toLocaleString("en-GB")}`;
        this.readings.messages.textContent = about.messages.toLocaleString("en-GB");
        if (about.regret !== null) this.readings.regret.textContent = figure(about.regret);
        about.runs.forEach(({ regret, messages }, run) => { this.painters[run].sent.textContent = `${regret === null ? "" : `regret ${figure(regret)} · `}${count(messages, "transmission")}`; });
      } else about.sent.forEach((sent, panel) => { this.painters[panel].sent.textContent = count(sent, "transmission"); });
    }

    /* Says what is shown; while a run plays that would be too much to listen to, so then at most once a second. */
    announce() {
      const now = performance.now();
      if (this.frame !== null && this.doc.kind === "run" && this.index < this.model.last && now - (this.told || 0) < 1000) return;
      this.told = now;
      const lines = this.model.words(this.index);
      this.status.replaceChildren(...lines.map((line) => { const one = make("span"); one.textContent = line; return one; }));
      this.painters.forEach((painter, number) => painter.canvas.setAttribute("aria-label", lines[number] || lines[0]));
      this.send("bm-frame", this.state);
    }

    // What the page around it may do

    append(frames, notes, run = 0) {
      const atEnd = this.index === this.model.last;
      this.model.append(frames, run);
      if (notes) this.tell(notes);
      if (atEnd && this.frame === null) this.show(this.model.last);
      else this.paint();
    }

    /* Another document in place of this one, from its beginning or, if it goes on, played up to the round that was
       shown. Who works in the drawing with the keyboard goes on where they were. */
    replace(doc, goesOn = false) {
      const { root, chosen } = this;
      let before = null;
      if (goesOn && this.doc.kind === "run") {
        const { round } = this.model.about(this.index);
        // What has come to the end of a run's beginning plays on when the rest is there.
        const waits = this.index > 0 && this.index === this.model.last && round < this.doc.horizon && !this.still.matches;
        const halts = (this.frame === null && !waits) || (this.goal !== null && this.halts);
        before = { round: this.goal === null ? round : this.model.rounds[this.goal - 1], halts };
      }
      const within = root.contains(document.activeElement) ? document.activeElement.dataset.bm || "" : null;
      const same = JSON.stringify(doc.network.names) === JSON.stringify(this.doc.network.names);
      this.build(doc);
      if (same && chosen >= 0) { this.chosen = chosen; this.paint(); }
      if (within !== null) (this.root.querySelector(`[data-bm="${within}"]`) || this.root).focus({ preventScroll: true });
      if (before) this.catchUp(before.round, before.halts);
    }

    /* Play from the beginning up to a round, within a moment; then stop, or go on at the usual speed. */
    catchUp(round, halts) {
      const goal = this.model.indexOf(round);
      if (goal === 0 || this.still.matches) {
        this.show(goal);
        if (!halts) this.play();
        return;
      }
      this.play();
      this.goal = goal;
      this.halts = halts;
    }

    set(options) {
      Object.assign(this.options, options);
      this.legendOf = null;
      this.choice();
      this.resize();
    }

    destroy() {
      this.pause();
      this.sizes.disconnect();
      this.dark.removeEventListener("change", this.repaint);
      this.root.remove();
      delete this.element.bmView;
    }
  }

  window.BanditmeshPlayer = { mount: (element, doc, options = {}) => new View(element, doc, options) };
})();

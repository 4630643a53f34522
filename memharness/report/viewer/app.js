/* The pages of a viewer's folder.
 *
 * What a run holds (questions, items, replies, names) is untrusted. It becomes text nodes and never markup: elements are
 * made by `el` alone, addresses are made here, and the page's policy forbids inline scripts and markup from strings.
 */
(() => {
  "use strict";

  // ------------------------------------------------------------------------------------------------------------- data

  /* `fetch` may not read files beside a page opened from a file, but scripts may be loaded. Each shard is a script that
   * calls memharness(name, json). */
  const LOADED = 300; // shards that are kept; the least recently loaded one goes first
  const shards = new Map();
  const waiting = new Map();
  const policy = window.trustedTypes?.createPolicy("shards", {
    createScriptURL: (url) => {
      if (!/^data\/[a-z0-9-]+\.js$/.test(url)) throw new TypeError(`no shard: ${url}`);
      return url;
    },
  });

  Object.defineProperty(window, "memharness", { value: (name, text) => waiting.get(name)?.(text) });

  function load(name) {
    if (shards.has(name)) return shards.get(name);
    const promise = new Promise((resolve, reject) => {
      const script = document.createElement("script");
      const url = `data/${name}.js`;
      const done = (value, error) => {
        waiting.delete(name);
        script.remove();
        if (error) {
          shards.delete(name);
          reject(error);
        } else resolve(value);
      };
      waiting.set(name, (text) => done(JSON.parse(text)));
      const broken = () => done(null, new Error(`${url} is missing or damaged; write the viewer again`));
      script.onerror = broken;
      script.onload = () => waiting.has(name) && broken(); // it ran, and handed nothing over
      script.src = policy ? policy.createScriptURL(url) : url;
      document.head.append(script);
    });
    shards.set(name, promise);
    if (shards.size > LOADED) shards.delete(shards.keys().next().value);
    return promise;
  }

  /* The shard of a row: the last one that starts at or before it. */
  function place(starts, row) {
    let low = 0,
      high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  async function rowOf(name, starts, row) {
    const at = place(starts, row);
    return (await load(`${name}-${at}`))[row - starts[at]];
  }

  const runs = () => load("runs");
  const summaryOf = (run) => load(`r${run}-summary`);
  const wordsOf = async (run, row) => rowOf(`r${run}-l`, (await indexOf(run)).starts.l, row);
  const questionOf = async (run, row) => rowOf(`r${run}-q`, (await indexOf(run)).starts.q, row);
  const itemOf = async (number) => rowOf("items", (await runs()).items, number);

  const indices = new Map(); // what every page of a run needs stays loaded
  function indexOf(run) {
    if (!indices.has(run)) {
      indices.set(
        run,
        load(`r${run}-index`).then((index) => {
          index.at = new Map(index.ids.map((id, row) => [formed(id), row]));
          return index;
        }),
      );
    }
    return indices.get(run);
  }

  // --------------------------------------------------------------------------------------------------------- elements

  const SVG = "http://www.w3.org/2000/svg";

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on"))
        element.addEventListener(name.slice(2), value); // a function of ours, never a string
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  }
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const $ = (id) => document.getElementById(id);
  const say = (text) => {
    $("said").textContent = text;
  };

  const whole = (n) => Number(n).toLocaleString("en-US");
  const three = (x) => (typeof x === "number" ? x.toFixed(3) : "–");
  const plural = (n, word, words = `${word}s`) => `${whole(n)} ${n === 1 ? word : words}`;
  const between = (low, high) => (typeof low === "number" ? `${three(low)} – ${three(high)}` : "none");
  const brief = (text, size = 90) => (text.length > size ? `${text.slice(0, size - 1)}…` : text);
  const told = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const formed = (text) => String(text).toWellFormed?.() ?? String(text); // half a surrogate pair fits in no address
  const link = (...path) => `#/${path.map((piece) => encodeURIComponent(formed(piece))).join("/")}`;
  const entries = (value) => (value && typeof value === "object" ? Object.entries(value) : []);

  function table(headings, rows, caption) {
    const cells = (row, tag) =>
      row.map((cell, at) =>
        el(tag, { class: headings[at].startsWith(">") ? "n" : null, scope: tag === "th" ? "col" : null }, cell),
      );
    return el(
      "div",
      { class: "scroll" },
      el(
        "table",
        {},
        caption && el("caption", { class: "sr" }, caption),
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            cells(
              headings.map((name) => name.replace(/^>/, "")),
              "th",
            ),
          ),
        ),
        el(
          "tbody",
          {},
          rows.map((row) => el("tr", { class: row.mark }, cells(row.cells ?? row, "td"))),
        ),
      ),
    );
  }
  const facts = (pairs) =>
    el(
      "dl",
      { class: "facts" },
      pairs
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    );
  const section = (title, ...children) => el("section", {}, el("h2", {}, title), children);
  const more = (title, make) => {
    // made when it is opened: traces are long
    const box = el("details", {}, el("summary", {}, title));
    box.addEventListener("toggle", () => {
      if (box.open && box.children.length === 1) box.append(make());
    });
    return box;
  };
  const json = (value) => el("pre", { tabindex: "0" }, JSON.stringify(value, null, 1));

  function verdict(right) {
    const [sign, word, kind] =
      right === true || right === 1
        ? ["✓", "right", "good"]
        : right === false || right === 0
          ? ["✗", "wrong", "bad"]
          : ["○", "not decided", "quiet"];
    return el("span", { class: kind }, el("span", { "aria-hidden": "true" }, `${sign} `), word);
  }

  function range(value, low, high) {
    if (typeof low !== "number" || low < 0 || high > 1) return null;
    const x = (share) => 5 + 134 * share;
    return svg(
      "svg",
      { class: "range", viewBox: "0 0 144 16", "aria-hidden": "true" },
      svg("line", { class: "rail", x1: 5, x2: 139, y1: 8, y2: 8 }),
      svg("line", { class: "span", x1: x(low), x2: x(high), y1: 8, y2: 8 }),
      svg("circle", { class: "dot", cx: x(value), cy: 8, r: 4 }),
    );
  }

  // --------------------------------------------------------------------------------------------------------- pictures

  async function picture(part, about) {
    const known = part.image ? (await load("pictures"))[part.image.slice(0, 12)] : null;
    const name = part.source || (part.image ?? "").slice(0, 12) || "picture";
    if (!known) {
      return el(
        "figure",
        {},
        el("p", { class: "quiet" }, `▨ ${name}`),
        el("figcaption", {}, part.image ? "not copied into this folder" : "not at hand", about && `: ${about}`),
      );
    }
    const [suffix, width, height] = known;
    const file = part.image.slice(0, 12);
    const image = el("img", {
      src: `media/${file}.thumb.jpg`,
      width,
      height,
      loading: "lazy",
      alt: about || `picture ${name}`,
    });
    return el(
      "figure",
      {},
      suffix ? el("a", { href: `media/${file}.${suffix}`, target: "_blank", title: "The original" }, image) : image,
      el("figcaption", {}, name, part.width ? ` · ${part.width} × ${part.height}` : ""),
    );
  }

  async function partsOf(parts, derived = []) {
    const media = parts.map((part, at) => [part, at]).filter(([part]) => !("text" in part));
    const about = (at) => derived.find(([kind, , of]) => /caption/.test(kind) && (of === at || of === null))?.[1];
    const shown = await Promise.all(
      media.map(([part, at]) =>
        "image" in part
          ? picture(part, about(at))
          : el(
              "figure",
              {},
              el("p", { class: "quiet" }, `▷ ${part.source || "video"}`),
              el("figcaption", {}, "a video; it is not copied"),
            ),
      ),
    );
    const text = parts
      .filter((part) => "text" in part && part.text)
      .map((part) => part.text)
      .join("\n");
    return [text && el("p", { class: "itemtext" }, text), shown.length > 0 && el("div", { class: "pictures" }, shown)];
  }

  /* A prompt as the reader saw it: text, with pictures where they stood. */
  async function promptOf(prompt) {
    const known = await load("pictures");
    const pieces = prompt.split(/<image ([0-9a-f]{12})>/);
    return el(
      "pre",
      { tabindex: "0", "aria-label": "Prompt" },
      pieces.map((piece, at) => {
        if (at % 2 === 0) return piece;
        if (!known[piece]) return `<image ${piece}>`;
        const [, width, height] = known[piece];
        return el("img", { src: `media/${piece}.thumb.jpg`, width, height, alt: `picture ${piece}`, loading: "lazy" });
      }),
    );
  }

  const headOf = (item) =>
    [item.label !== item.id && item.label, item.time?.replace("T", " "), item.speaker, item.place]
      .filter(Boolean)
      .join(" · ");

  // --------------------------------------------------------------------------------------- expected against actual

  const bare = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
  const LONGEST = 400; // words that are compared; the table below is of their product

  /* Marks the longest common run of words of the gold answer and the reply. */
  function compared(gold, reply) {
    const [a, b] = [gold, reply].map((text) => text.split(/(\s+)/));
    const [x, y] = [a, b].map((words) =>
      words
        .map((word, at) => [bare(word), at])
        .filter(([word]) => word)
        .slice(0, LONGEST),
    );
    const size = y.length + 1;
    const best = new Uint16Array((x.length + 1) * size);
    for (let i = x.length - 1; i >= 0; i--) {
      for (let j = y.length - 1; j >= 0; j--) {
        best[i * size + j] =
          x[i][0] === y[j][0]
            ? 1 + best[(i + 1) * size + j + 1]
            : Math.max(best[(i + 1) * size + j], best[i * size + j + 1]);
      }
    }
    const same = [new Set(), new Set()];
    for (let i = 0, j = 0; i < x.length && j < y.length;) {
      if (x[i][0] === y[j][0]) {
        same[0].add(x[i++][1]);
        same[1].add(y[j++][1]);
      } else if (best[(i + 1) * size + j] >= best[i * size + j + 1]) i++;
      else j++;
    }
    const mark = (words, shared, lost) =>
      words.map((word, at) =>
        !bare(word)
          ? word
          : shared.has(at)
            ? el("mark", { class: "same" }, word)
            : lost
              ? el("mark", { class: "lost" }, word)
              : word,
      );
    return {
      gold: mark(a, same[0], true),
      reply: mark(b, same[1], false),
      shared: same[0].size / Math.max(1, x.length),
    };
  }

  function answersOf(question) {
    const reply = question.answer ?? "";
    const all = question.answers.map((gold) => compared(gold, reply));
    const best = all.reduce((one, other) => (other.shared > (one?.shared ?? -1) ? other : one), null);
    return [
      el(
        "dl",
        { class: "answers" },
        el("dt", {}, "Expected"),
        el(
          "dd",
          {},
          best
            ? all.map((one, at) => [at > 0 && el("span", { class: "quiet" }, "  or  "), one.gold])
            : el("span", { class: "quiet" }, question.abstain ? "that memory does not hold it" : "no gold answer"),
        ),
        el("dt", {}, "Answered"),
        el(
          "dd",
          {},
          question.answer === undefined
            ? el("span", { class: "quiet" }, "no answer")
            : reply === ""
              ? el("span", { class: "quiet" }, "an empty answer")
              : best
                ? best.reply
                : reply,
        ),
      ),
      best &&
        reply &&
        el(
          "p",
          { class: "legend" },
          el("span", {}, el("mark", { class: "same" }, "words in both")),
          el("span", {}, el("mark", { class: "lost" }, "expected, not said")),
        ),
    ];
  }

  // -------------------------------------------------------------------------------------------------- question: pieces

  const CHAIN = {
    yes: ["✓", "good"],
    no: ["✗", "bad"],
    partly: ["◐", "warn"],
    unknown: ["?", "quiet"],
    none: ["–", "quiet"],
  };

  function chainOf(question) {
    const broke = question.right === true ? [] : question.broke.split(/ or | … /);
    const names = question.chain.map(([name]) => name);
    const [from, to] = [names.indexOf(broke[0]), names.indexOf(broke.at(-1))];
    return section(
      "From memory to score",
      question.right !== true &&
        el(
          "p",
          {},
          broke[0] === "unknown" || !broke[0]
            ? "Where this broke is not known."
            : [
                "First broken link: ",
                el("strong", { class: "bad" }, question.broke),
                to - from > 1
                  ? ". Which of these and what lies between is not known."
                  : to > from
                    ? ". Which of the two is not known."
                    : ".",
              ],
        ),
      el(
        "ol",
        { class: "chain" },
        question.chain.map(([name, state, why], at) =>
          el(
            "li",
            {
              class: `${Object.hasOwn(CHAIN, state) ? state : ""}${from >= 0 && at >= from && at <= to ? " broke" : ""}`,
            },
            el(
              "span",
              { class: "name" },
              el("span", { class: CHAIN[state]?.[1], "aria-hidden": "true" }, `${CHAIN[state]?.[0]} `),
              name,
              el("span", { class: "sr" }, `: ${state}`),
            ),
            why,
          ),
        ),
      ),
    );
  }

  const FIRST = 20; // pieces of evidence that are drawn before being asked

  function evidenceOf(question, run) {
    const gold = new Map(question.gold.map((pointer) => [pointer[1], pointer]));
    const found = question.evidence ?? [];
    const recalled = new Set(found.map((pointer) => pointer[1]));
    const missed = [...gold.values()].filter((pointer) => !recalled.has(pointer[1]));
    const draw = ([number, id, part, span, score], rank) => {
      const isGold = gold.has(id);
      const body = el(
        "div",
        { class: "item" },
        el(
          "div",
          { class: "meta" },
          el("span", { class: "mono" }, id),
          part !== null && ` part ${part}`,
          span && ` characters ${span[0]}–${span[1]}`,
          isGold && el("span", { class: "goldmark" }, " ★ gold"),
        ),
      );
      if (number !== null && question.memory[3]) {
        itemOf(number)
          .then(async (item) => {
            const head = headOf(item);
            if (head) body.firstChild.append(` · ${head}`);
            const [text, pictures] = await partsOf(item.parts, item.derived);
            body.append(...[pictures, text, derivedOf(item.derived ?? [])].filter(Boolean));
          })
          .catch(failed);
      }
      return el(
        "li",
        { class: isGold ? "isgold" : null },
        el("span", { class: "rank" }, rank ? `${rank}.` : "–"),
        body,
        el(
          "span",
          { class: "number meta", title: "Score the method gave" },
          typeof score === "number" ? three(score) : "",
        ),
      );
    };
    const list = el(
      "ol",
      { class: "evidence" },
      found.slice(0, FIRST).map((pointer, at) => draw(pointer, at + 1)),
    );
    const rest =
      found.length > FIRST &&
      el(
        "button",
        {
          type: "button",
          onclick: (event) => {
            list.append(...found.slice(FIRST).map((pointer, at) => draw(pointer, FIRST + at + 1)));
            event.target.remove();
          },
        },
        `Show ${whole(found.length - FIRST)} more`,
      );
    const ranks = [...gold.keys()].map((id) => found.findIndex((pointer) => pointer[1] === id) + 1);
    const words =
      question.evidence === undefined
        ? "The record holds no readout."
        : [
            plural(found.length, "pointer"),
            gold.size
              ? `; gold at rank ${ranks.map((rank) => rank || "none").join(", ")}`
              : "; the data name no gold evidence",
          ];
    return section(
      "Evidence",
      el(
        "p",
        { class: "meta" },
        words,
        entries(question.cost).length > 0 &&
          ` · cost ${entries(question.cost)
            .map(([name, n]) => `${whole(n)} ${name}`)
            .join(", ")}`,
      ),
      list,
      rest,
      missed.length > 0 && [
        el("h3", {}, "Gold that was not recalled"),
        el(
          "ol",
          { class: "evidence" },
          missed.map((pointer) => draw(pointer, 0)),
        ),
      ],
      stripOf(question, run),
    );
  }

  const derivedOf = (derived) =>
    derived.length
      ? el(
          "p",
          { class: "meta" },
          derived.filter(([, text]) => text).map(([kind, text], at) => [at > 0 && el("br"), `${kind}: ${text}`]),
        )
      : null;

  /* Where in the memory, in order of time, what was recalled and what was gold lies. */
  function stripOf(question, run) {
    const [context, first, count] = question.memory;
    if (!count) return null;
    const x = (number) => 8 + (984 * (number - first + 0.5)) / count;
    const recalled = new Set((question.evidence ?? []).map(([number]) => number).filter((number) => number !== null));
    const gold = new Set(question.gold.map(([number]) => number).filter((number) => number !== null));
    const words = `${plural(count, "item")} in order of time; ${whole(recalled.size)} recalled, ${whole(gold.size)} gold`;
    return [
      el("h3", {}, "In the memory"),
      svg(
        "svg",
        { class: "strip", viewBox: "0 0 1000 34", role: "img", "aria-label": words },
        svg("line", { class: "rail", x1: 0, x2: 1000, y1: 22, y2: 22 }),
        [...recalled].map((number) => svg("line", { class: "recalled", x1: x(number), x2: x(number), y1: 14, y2: 30 })),
        [...gold].map((number) =>
          svg("circle", { class: recalled.has(number) ? "gold" : "miss", cx: x(number), cy: 7, r: 4.5 }),
        ),
      ),
      el(
        "p",
        { class: "legend" },
        el("span", {}, words),
        el("span", {}, "│ recalled  ● gold, recalled  ○ gold, missed"),
        el(
          "a",
          { href: `${link("memory", run, context)}?q=${encodeURIComponent(formed(question.id))}` },
          "Open the timeline",
        ),
      ),
    ];
  }

  /* A trace holds what a method put there: drawn is what looks like a forest, and not so large that nobody could see it. */
  const isForest = (value) =>
    Array.isArray(value?.items) &&
    value.items.length <= 300 &&
    Array.isArray(value.edges) &&
    value.edges.every(Array.isArray);

  /* The evidence forest of a trace: trees side by side, roots on top, in the order in which the method read them out. */
  function graphOf(question) {
    const trace = question.trace ?? {};
    const all = isForest(trace.forest) ? trace.forest : null;
    if (!all) return null;
    const kept = new Set((isForest(trace.pruned) ? trace.pruned : all).items);
    const gold = new Set(question.gold.map((pointer) => pointer[1]));
    const rank = new Map((question.evidence ?? []).map((pointer, at) => [pointer[1], at + 1]));
    const near = new Map(all.items.map((id) => [id, []]));
    for (const [left, right] of all.edges) {
      if (near.has(left) && near.has(right)) {
        near.get(left).push(right);
        near.get(right).push(left);
      }
    }
    const at = new Map();
    let column = 0,
      row = 0,
      deepest = 0;
    const WIDE = 9;
    const lay = (id, depth) => {
      // a leaf takes a column; a parent stands over the middle of its children
      at.set(id, null);
      deepest = Math.max(deepest, depth);
      const below = near
        .get(id)
        .map((other) => (at.has(other) ? null : lay(other, depth + 1)))
        .filter((x) => x !== null);
      const x = below.length ? (below[0] + below.at(-1)) / 2 : column++;
      at.set(id, [x, row + depth]);
      return x;
    };
    for (const id of all.items) {
      if (at.has(id)) continue;
      if (column >= WIDE) {
        column = 0;
        row += deepest + 1;
        deepest = 0;
      }
      lay(id, 0);
    }
    const spots = [...at.values()];
    const [wide, high] = [Math.max(...spots.map(([x]) => x)) + 1, Math.max(...spots.map(([, y]) => y)) + 1];
    const [X, Y] = [(id) => 55 + 110 * at.get(id)[0], (id) => 24 + 100 * at.get(id)[1]];
    const on = (from, to) => from + 0.72 * (to - from); // nearer to the lower end, clear of the upper one's label
    const spot = (left, right) => {
      const [upper, lower] = at.get(left)[1] <= at.get(right)[1] ? [left, right] : [right, left];
      return { x: on(X(upper), X(lower)), y: on(Y(upper), Y(lower)) - 4 };
    };
    const utility = new Map((question.evidence ?? []).map((pointer) => [pointer[1], pointer[4]]));
    const words = `A forest of ${plural(all.items.length, "item")} and ${plural(all.edges.length, "relation")}`;
    const figure = svg(
      "svg",
      {
        class: "graph",
        viewBox: `0 0 ${Math.max(wide, 7) * 110} ${high * 100 - 22}`,
        role: "img",
        "aria-label": words,
      },
      all.edges
        .filter(([left, right]) => at.has(left) && at.has(right))
        .map(([left, right, reliability]) => [
          svg("line", { class: "edge", x1: X(left), y1: Y(left), x2: X(right), y2: Y(right) }),
          typeof reliability === "number" &&
            svg("text", { class: "label", ...spot(left, right) }, reliability.toFixed(2)),
        ]),
      [...at.keys()].map((id) =>
        svg(
          "g",
          {},
          svg("title", {}, `${id}${gold.has(id) ? ", gold" : ""}${kept.has(id) ? "" : ", pruned away"}`),
          svg("circle", {
            class: `node${gold.has(id) ? " isgold" : ""}${kept.has(id) ? "" : " cut"}`,
            cx: X(id),
            cy: Y(id),
            r: 15,
          }),
          svg("text", { class: "rank", x: X(id), y: Y(id) + 4 }, rank.get(id) ?? "×"),
          svg(
            "text",
            { class: "label", x: X(id), y: Y(id) + 31 },
            brief(String(id).length > 15 ? `…${String(id).slice(-14)}` : String(id), 16),
          ),
          svg(
            "text",
            { class: "label", x: X(id), y: Y(id) + 45 },
            typeof utility.get(id) === "number" ? `u ${three(utility.get(id))}` : "",
          ),
        ),
      ),
    );
    const shape = isForest(trace.pruned) ? trace.pruned : all;
    return section(
      "Evidence forest",
      figure,
      el(
        "p",
        { class: "legend" },
        el("span", {}, words),
        el("span", {}, "number: rank in the readout"),
        el("span", {}, "heavy ring: gold"),
        kept.size < all.items.length && el("span", {}, "dashed: pruned away"),
        el("span", {}, "on a line: reliability"),
        typeof shape.objective === "number" && el("span", {}, `objective ${three(shape.objective)}`),
        Array.isArray(all.climb) &&
          all.climb.length > 1 &&
          el("span", {}, `climbed ${all.climb.map(three).join(" → ")}`),
      ),
      more("The relations in words", () =>
        el(
          "ul",
          {},
          all.edges.map(([left, right, reliability]) =>
            el(
              "li",
              {},
              `${left}${rank.has(left) ? ` (rank ${rank.get(left)})` : ""} and ${right}${rank.has(right) ? ` (rank ${rank.get(right)})` : ""}, reliability ${three(reliability)}`,
            ),
          ),
        ),
      ),
    );
  }

  const scoreRows = (rows) =>
    rows.map(([name, value, status, note]) => [
      name,
      value === null ? "–" : +value.toFixed(4),
      status === "ok" ? "" : status,
      note,
    ]);

  function scoresOf(question) {
    const judged = (judge) => [
      el("h3", {}, `${judge.judge}, ${judge.rubric}`),
      table(["score", ">value", "status", "note"], scoreRows(judge.scores)),
      judge.replies.map(repliesOf),
    ];
    return section(
      "Scores",
      question.scores.length
        ? table(["score", ">value", "status", "note"], scoreRows(question.scores), "Scores of this question")
        : el("p", { class: "quiet" }, "This question has no score of its own."),
      question.groupscores && [
        el("h3", {}, question.group ? `Of its group ${question.group}` : "Of its episode"),
        table(["score", ">value", "status", "note"], scoreRows(question.groupscores)),
      ],
      (question.replies ?? []).length > 0 && [el("h3", {}, "Judge"), question.replies.map(repliesOf)],
      (question.judges ?? []).length > 0 && [el("h3", {}, "Further judges"), question.judges.map(judged)],
    );
  }
  const repliesOf = ([metric, text, finish]) =>
    el("div", {}, el("p", { class: "meta" }, `${metric} · ended by ${finish}`), el("pre", { tabindex: "0" }, text));

  const KINDS = ["text", "image", "output", "latent", "cached", "reasoning"];
  function costOf(spent) {
    const phases = entries(spent);
    const kinds = KINDS.filter((kind) => ["text", "output"].includes(kind) || phases.some(([, sums]) => sums[kind]));
    return phases.length
      ? table(
          ["phase", ">calls", ...kinds.map((kind) => `>${kind}`)],
          phases.map(([phase, sums]) => [
            phase,
            whole(sums.calls ?? 0),
            ...kinds.map((kind) => whole(sums[kind] ?? 0)),
          ]),
          "Tokens and calls",
        )
      : el("p", { class: "quiet" }, "No model was called.");
  }

  async function askedOf(question) {
    const letters = new Set(question.answers);
    return el(
      "div",
      {},
      (
        await partsOf(
          question.parts.filter((part) => !("text" in part)),
          question.derived,
        )
      ).filter(Boolean),
      question.choices &&
        el(
          "ul",
          { class: "choices" },
          await Promise.all(
            question.choices.map(async ([key, parts]) =>
              el(
                "li",
                {},
                el("strong", {}, `${key}.`),
                (await partsOf(parts)).filter(Boolean),
                letters.has(key) && el("span", { class: "goldmark" }, "★ gold"),
              ),
            ),
          ),
        ),
      question.instruction && el("p", { class: "meta" }, question.instruction),
    );
  }

  const titleOf = (question) =>
    question.parts
      .filter((part) => part.text)
      .map((part) => part.text)
      .join(" ") || `Question ${question.id}`;

  function verdictOf(question, summary) {
    const decided = question.scores.find(([name]) => name === summary.score);
    return el(
      "p",
      { class: "verdict" },
      el("strong", {}, verdict(question.right)),
      decided &&
        el("span", { class: "meta" }, `${summary.score} ${three(decided[1])}, right from ${summary.threshold}`),
      el("span", { class: `meta${question.outcome === "ok" ? "" : " bad"}` }, `outcome ${question.outcome}`),
      (question.flags ?? []).map((flag) => el("span", { class: "badge warn" }, flag)),
    );
  }

  const errorOf = (question) =>
    question.error &&
    el("p", { class: "note" }, `${question.error.type} in ${question.error.where}: ${question.error.message}`);

  async function sawOf(question) {
    const thinking = question.thinking ?? "";
    const reasoned = entries(question.spent).reduce((sum, [, sums]) => sum + (sums.reasoning ?? 0), 0);
    return [
      section(
        "What the reader saw",
        question.prompt
          ? await promptOf(question.prompt)
          : el(
              "p",
              { class: "quiet" },
              question.outcome === "ok"
                ? "The record holds no prompt: the method made its own, or nobody was asked."
                : "No prompt was sent.",
            ),
        question.view && el("p", { class: "meta" }, `view ${question.view}`),
      ),
      section(
        "Reply",
        el("pre", { tabindex: "0" }, question.answer ?? "no answer"),
        (await partsOf(question.made ?? [])).filter(Boolean),
        thinking
          ? more("Thinking", () => el("pre", { tabindex: "0" }, thinking))
          : reasoned > 0 &&
              el(
                "p",
                { class: "meta" },
                `The reader thought for ${plural(reasoned, "token")}; their words are not kept.`,
              ),
        question.extra && more("Structured output", () => json(question.extra)),
      ),
    ];
  }

  // --------------------------------------------------------------------------------------------------- page: question

  let lastList = null; // {hash, run, rows}: where j, k and Esc go from a question

  async function questionPage(run, id) {
    const [index, summary, { runs: all }] = await Promise.all([indexOf(run), summaryOf(run), runs()]);
    const row = index.at.get(id);
    if (row === undefined) return missing(`This run has no question ${id}.`);
    const question = await questionOf(run, row);
    const list =
      lastList?.run === run && lastList.other === undefined && lastList.at.has(row)
        ? lastList
        : { hash: link("run", run, "questions"), rows: null };
    const rows = list.rows;
    const at = rows ? list.at.get(row) : row;
    const size = rows ? rows.length : index.ids.length;
    const to = (step) => {
      const next = at + step;
      return next >= 0 && next < size ? link("q", run, index.ids[rows ? rows[next] : next]) : null;
    };
    steps = { before: to(-1), after: to(1), up: list.hash };
    const others = all.map((_, other) => other).filter((other) => other !== run);
    return {
      title: brief(titleOf(question), 60),
      nodes: [
        crumbs(
          steps,
          `${whole(at + 1)} of ${whole(size)}`,
          others.map((other) => el("a", { href: link("pair", run, other, id) }, `beside ${nameOf(all, other)}`)),
        ),
        el("h1", {}, titleOf(question)),
        await askedOf(question),
        verdictOf(question, summary),
        errorOf(question),
        answersOf(question),
        chainOf(question),
        evidenceOf(question, run),
        graphOf(question),
        await sawOf(question),
        el(
          "div",
          { class: "columns" },
          scoresOf(question),
          section(
            "Tokens and calls",
            costOf(question.spent),
            el(
              "p",
              { class: "meta" },
              `${question.seconds.toFixed(2)} s · ${plural(question.attempts, "attempt")}`,
              question.requested && ` · at most ${plural(question.requested, "item")}`,
            ),
          ),
        ),
        section(
          "About",
          facts([
            ["Question id", el("span", { class: "mono" }, question.id)],
            ["Source's id", question.native],
            ["Category", question.category],
            ["Context", el("a", { href: link("memory", run, question.memory[0]) }, question.context)],
            ["Cluster", question.cluster],
            ["Group", question.group],
            ["Asked at", question.time],
          ]),
          question.about && more("What the scorer was given", () => json(question.about)),
          question.trace && more("The method's trace", () => json(question.trace)),
        ),
      ],
    };
  }

  function crumbs(to, where, extra) {
    return el(
      "div",
      { class: "crumbs" },
      el("a", { href: to.up }, "← Back to the list"),
      extra,
      el(
        "nav",
        { "aria-label": "Questions" },
        to.before && el("a", { href: to.before, rel: "prev" }, "‹ previous"),
        el("span", { class: "quiet" }, where),
        to.after && el("a", { href: to.after, rel: "next" }, "next ›"),
      ),
    );
  }

  // ------------------------------------------------------------------------------------------------------ long lists

  /* A list of any length: only rows in sight are in the document. Rows are of one height, so that a row's place is known. */
  class List {
    constructor(label, height, draw) {
      this.height = height;
      this.draw = draw;
      this.count = 0;
      this.chosen = 0;
      this.drawn = new Map();
      this.all = el("div", { class: "all", role: "list", "aria-label": label });
      this.node = el("div", { class: "list", tabindex: "-1" }, this.all);
      this.node.addEventListener("scroll", () => requestAnimationFrame(() => this.show()), { passive: true });
      this.all.addEventListener("focusin", (event) => {
        const row = event.target.closest(".row");
        if (row) this.chosen = Number(row.dataset.at);
      });
    }

    fill(count) {
      this.count = count;
      this.chosen = Math.min(this.chosen, Math.max(0, count - 1));
      this.drawn.clear();
      this.all.replaceChildren();
      this.all.style.height = `${count * this.height}px`;
      this.show();
    }

    show() {
      const above = Math.max(0, Math.floor(this.node.scrollTop / this.height) - 6);
      const below = Math.min(
        this.count,
        Math.ceil((this.node.scrollTop + (this.node.clientHeight || 900)) / this.height) + 6,
      );
      for (const [at, row] of this.drawn) {
        if ((at < above || at >= below) && !row.contains(document.activeElement)) {
          row.remove();
          this.drawn.delete(at);
        }
      }
      for (let at = above; at < below; at++) {
        if (this.drawn.has(at)) continue;
        const row = el("div", { class: "row", role: "listitem", "aria-setsize": this.count, "aria-posinset": at + 1 });
        row.dataset.at = at;
        row.style.height = `${this.height}px`;
        row.style.transform = `translateY(${at * this.height}px)`;
        this.draw(row, at);
        this.drawn.set(at, row);
        this.all.append(row);
      }
    }

    choose(at) {
      if (!this.count) return;
      this.chosen = Math.max(0, Math.min(this.count - 1, at));
      const top = this.chosen * this.height;
      if (top < this.node.scrollTop) this.node.scrollTop = top;
      else if (top + this.height > this.node.scrollTop + this.node.clientHeight)
        this.node.scrollTop = top + this.height - this.node.clientHeight;
      this.show();
      this.drawn.get(this.chosen)?.firstElementChild?.focus({ preventScroll: true });
    }

    step(by) {
      this.choose(this.drawn.get(this.chosen)?.contains(document.activeElement) ? this.chosen + by : this.chosen);
    }
  }

  const rowHeight = () => (matchMedia("(max-width: 46rem)").matches ? 92 : 64);

  function choice(label, name, values, params, half) {
    const select = el(
      "select",
      { name },
      el("option", { value: "" }, "all"),
      values.map(([value, words]) => el("option", { value }, words)),
    );
    select.value = params.get(name) ?? "";
    return el("label", { class: half ? "half" : null }, label, select);
  }
  const field = (label, attributes, half) =>
    el("label", { class: half ? "half" : null }, label, el("input", attributes));

  /* Filters keep themselves in the address, so that a filtered list can be linked to. */
  function filtersIn(path, controls, changed) {
    const form = el("form", { class: "filters", role: "search" }, controls);
    let later = 0;
    const apply = () => {
      const params = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
      history.replaceState(null, "", `${path}${params.size ? `?${params}` : ""}`);
      changed(params);
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      apply();
    });
    form.addEventListener("input", () => {
      clearTimeout(later);
      later = setTimeout(apply, 150);
    });
    return form;
  }

  /* Rows whose words hold every word that is searched for. Words are loaded shard by shard. */
  async function searched(run, rows, text, alive) {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!wanted.length) return rows;
    const {
      ids,
      starts: { l: starts },
    } = await indexOf(run);
    const hits = [];
    let shard = -1,
      words = [];
    for (const row of rows) {
      const at = place(starts, row);
      if (at !== shard) {
        words = await load(`r${run}-l-${at}`);
        shard = at;
        if (!alive()) return [];
        say(`searching, ${Math.round((100 * at) / starts.length)} %`);
      }
      const line = `${ids[row]} ${words[row - starts[at]].join(" ")}`.toLowerCase();
      if (wanted.every((word) => line.includes(word))) hits.push(row);
    }
    return hits;
  }

  let shownList = null,
    turn = 0;

  async function questionsPage(run, params) {
    const [index, summary] = await Promise.all([indexOf(run), summaryOf(run)]);
    const path = link("run", run, "questions");
    const named = (column) =>
      index.names[column]
        .map((name, code) => [code, name || "(none)"])
        .sort((a, b) => String(a[1]).localeCompare(b[1], "en", { numeric: true }));
    let rows = [];
    const list = new List("Questions", rowHeight(), (row, at) => {
      const n = rows[at];
      const words = el("span", { class: "words" }, el("span", {}, index.ids[n]), el("span", {}, " "));
      row.append(
        el(
          "a",
          { href: link("q", run, index.ids[n]) },
          verdict(index.right[n]),
          words,
          el("span", { class: "side" }, index.names.category[index.category[n]]),
          el("span", { class: "n" }, index.score?.[n] === undefined ? "" : three(index.score[n])),
          el(
            "span",
            { class: "side broke" },
            index.outcome[n] && index.names.outcome[index.outcome[n]] !== "ok"
              ? index.names.outcome[index.outcome[n]]
              : index.names.broke[index.broke[n]],
          ),
        ),
      );
      wordsOf(run, n)
        .then(([asked, gold, reply]) => {
          words.firstChild.textContent = asked || index.ids[n];
          words.lastChild.textContent = `${gold || "no gold answer"} → ${reply || "no answer"}`;
        })
        .catch(failed);
    });
    const count = el("p", { class: "meta" });
    const changed = async (params) => {
      const mine = ++turn;
      const code = (name) => (params.get(name) ? Number(params.get(name)) : null);
      const tests = ["outcome", "category", "broke"]
        .filter((name) => code(name) !== null)
        .map((name) => [index[name], code(name)]);
      if (params.get("right")) tests.push([index.right, code("right")]);
      const score = code("score") === null ? null : await load(`r${run}-score-${code("score")}`);
      const [least, most] = [Number(params.get("least") || -Infinity), Number(params.get("most") || Infinity)];
      let found = [];
      for (let n = 0; n < index.ids.length; n++) {
        if (
          tests.every(([column, value]) => column[n] === value) &&
          (!score || (score[n] !== null && score[n] >= least && score[n] <= most))
        )
          found.push(n);
      }
      found = await searched(run, found, params.get("text") ?? "", () => mine === turn);
      if (mine !== turn) return;
      rows = found;
      lastList = {
        hash: `${path}${params.size ? `?${params}` : ""}`,
        run,
        rows,
        at: new Map(rows.map((n, at) => [n, at])),
      };
      count.textContent =
        rows.length === index.ids.length
          ? plural(rows.length, "question")
          : `${whole(rows.length)} of ${plural(index.ids.length, "question")}`;
      say(count.textContent);
      list.node.scrollTop = 0;
      list.fill(rows.length);
    };
    const controls = [
      field("Search (/)", {
        type: "search",
        name: "text",
        value: params.get("text") ?? "",
        placeholder: "question, answer, id",
      }),
      choice(
        "Verdict",
        "right",
        [
          [1, "right"],
          [0, "wrong"],
          [-1, "not decided"],
        ],
        params,
        true,
      ),
      choice("Outcome", "outcome", named("outcome"), params, true),
      choice("Category", "category", named("category"), params, true),
      choice(
        "Broke at",
        "broke",
        named("broke").filter(([, name]) => name !== "(none)"),
        params,
        true,
      ),
      choice(
        "Score",
        "score",
        summary.names.map((name, at) => [at, name]),
        params,
        true,
      ),
      field("from", { type: "number", step: "any", name: "least", value: params.get("least") ?? "" }, true),
      field("to", { type: "number", step: "any", name: "most", value: params.get("most") ?? "" }, true),
    ];
    const begun = changed(params);
    return {
      title: "Questions",
      list,
      nodes: [el("h1", {}, "Questions"), filtersIn(path, controls, (p) => changed(p).catch(failed)), count, list.node],
      after: begun,
    };
  }

  // ---------------------------------------------------------------------------------------------------- page: summary

  async function summaryPage(run) {
    const [head, index] = await Promise.all([summaryOf(run), indexOf(run)]);
    const s = head.summary;
    const to = (column, name) => `${link("run", run, "questions")}?${column}=${index.names[column].indexOf(name)}`;
    const figures = Object.entries(s.scores).map(([name, one]) => ({
      mark: name === s.primary ? "lead" : null,
      cells: [
        name,
        three(one.value),
        range(one.value, one.low, one.high) ?? "",
        between(one.low, one.high),
        whole(one.n),
        whole(one.n_valid),
        one.n === one.n_valid ? "" : three(one.value_valid),
        [
          one.method,
          one.clusters && plural(one.clusters, "cluster"),
          one.unparsed && `${one.unparsed} unparsed`,
          one.judge_error && `${one.judge_error} judge errors`,
          one.note,
        ]
          .filter(Boolean)
          .join(", "),
      ],
    }));
    const phases = [...new Set([...Object.keys(s.tokens), ...Object.keys(s.seconds)])];
    const kinds = ["text", "image", "output", "latent"].filter(
      (kind) => ["text", "output"].includes(kind) || phases.some((phase) => s.tokens[phase]?.[kind]),
    );
    const misses = head.breaks.reduce((sum, [, n]) => sum + n, 0);
    const given = [
      ["All gold shown", "shown"],
      ["Some gold not shown", "not_shown"],
      ["Not known", "unknown"],
      ["No gold evidence named", "no_gold"],
    ]
      .filter(([, key]) => head.given[key].n)
      .map(([words, key]) => [
        words,
        whole(head.given[key].n),
        three(head.given[key].value),
        range(head.given[key].value, head.given[key].low, head.given[key].high) ?? "",
        between(head.given[key].low, head.given[key].high),
        head.given[key].note || head.given[key].method,
      ]);
    return {
      title: `${s.method} on ${s.bench}`,
      nodes: [
        el(
          "h1",
          {},
          s.method,
          s.control ? " (control)" : "",
          ` on ${s.bench}, `,
          s.until ? "retrieval only" : `read by ${s.reader}`,
          " ",
          s.data_state === "sample" && el("span", { class: "badge sample" }, "SAMPLE"),
          " ",
          head.unfinished && el("span", { class: "badge bad" }, "unfinished"),
        ),
        el("p", { class: "meta" }, head.conditions),
        s.data_state === "sample" &&
          el(
            "p",
            { class: "note" },
            "Measured on the bundled sample, which says nothing about the published benchmark.",
          ),
        [...head.notes, s.unmeasured].filter(Boolean).map((note) => el("p", { class: "note" }, note)),
        el(
          "p",
          {},
          el("a", { href: link("run", run, "questions") }, `All ${plural(s.n, "question")}`),
          " · ",
          el(
            "a",
            { href: `${link("run", run, "questions")}?right=0` },
            plural(index.right.filter((right) => right === 0).length, "miss", "misses"),
          ),
        ),
        section(
          "Scores",
          table(
            ["score", ">value", "", "95 % interval", ">n", ">valid", ">of valid", "how"],
            figures,
            "Scores with intervals",
          ),
          more(`${plural(Object.keys(s.official).length, "official figure")}`, () =>
            table(
              ["figure", ">value"],
              Object.entries(s.official).map(([name, value]) => [name, three(value)]),
            ),
          ),
        ),
        section(
          "Where misses broke",
          head.score
            ? el(
                "p",
                { class: "meta" },
                `A question is right where ${head.score} is at least ${head.threshold}. A miss counts at its first broken link; where an earlier link is not known, both are named.`,
              )
            : el("p", { class: "quiet" }, "No score decides what is right."),
          el(
            "div",
            { class: "bars" },
            head.breaks.map(([name, n]) => [
              el("a", { href: `${to("broke", name)}&right=0` }, name),
              el("meter", { min: 0, max: misses, value: n, "aria-label": `${name}: ${n} of ${misses}` }),
              el("span", {}, whole(n)),
            ]),
          ),
          el("h3", {}, "Right, given what was shown"),
          table(
            ["gold evidence", ">questions", ">P(right)", "", "95 % interval", "how"],
            given,
            "Right answers by whether gold was shown",
          ),
        ),
        el(
          "div",
          { class: "columns" },
          section(
            "Categories",
            table(
              ["category", ">n", ">right", `>${head.score ?? "score"}`, "95 % interval"],
              head.categories.map((one) => [
                el("a", { href: to("category", one.name) }, one.name || "(none)"),
                whole(one.n),
                `${whole(one.right)}/${whole(one.decided)}`,
                three(one.value),
                between(one.low, one.high),
              ]),
            ),
          ),
          section(
            "Outcomes",
            table(
              ["outcome", ">questions"],
              entries(s.outcomes).map(([name, n]) => [el("a", { href: to("outcome", name) }, name), whole(n)]),
            ),
            entries(s.flags).length > 0 && [
              el("h3", {}, "Flags"),
              table(
                ["flag", ">questions"],
                entries(s.flags).map(([name, n]) => [name, whole(n)]),
              ),
            ],
          ),
        ),
        section(
          "Cost",
          table(
            ["phase", ">calls", ...kinds.map((kind) => `>${kind}${kind === "latent" ? "" : " tokens"}`), ">seconds"],
            phases.map((phase) => [
              phase,
              whole(s.calls[phase] ?? 0),
              ...kinds.map((kind) => whole(s.tokens[phase]?.[kind] ?? 0)),
              (s.seconds[phase] ?? 0).toFixed(1),
            ]),
            "Cost by phase",
          ),
          el(
            "p",
            { class: "meta" },
            `Each context observed once, each question asked once. Price ${s.price === null ? "unknown" : `${s.price} USD`}; really spent: ${plural(s.spent.tokens, "token")}, ${plural(s.spent.calls, "call")}, ${s.spent.price} USD.`,
          ),
        ),
        (s.judgements ?? []).length > 0 &&
          section(
            "Further judges",
            s.judgements.map((one) => [
              el("h3", {}, `${one.judge}, ${one.metric}`),
              table(
                ["score", ">value", "95 % interval", ">n", ">valid"],
                Object.entries(one.scores).map(([name, f]) => [
                  name,
                  three(f.value),
                  between(f.low, f.high),
                  whole(f.n),
                  whole(f.n_valid),
                ]),
              ),
            ]),
            (s.agreement ?? []).length > 0 && more("How far they agree", () => json(s.agreement)),
          ),
        section(
          "What was run",
          facts([
            ["Identity", el("span", { class: "mono" }, s.identity)],
            ["Data", `${s.data_state}, digest ${(s.data_digest ?? "").slice(0, 12)}`],
            ["Subset", s.subset],
            ["Track", s.track],
            ["View", s.view],
            ["Budget", s.budget],
            ["Items", s.items],
            ["Embedder", s.embedder],
            ["Judge", s.judge ?? "none"],
            ["Seed", String(s.seed)],
            ["Run folder", head.folder],
            ...entries(s.models).map(([role, spec]) => [`Model of ${role}`, told(spec)]),
            ["Created", head.provenance.created],
            ["memharness", head.provenance.memharness],
            ["Git", head.provenance.git],
            ["Code", head.provenance.code],
            ["Python", head.provenance.python],
            [
              "Packages",
              entries(head.provenance.versions)
                .map((pair) => pair.join(" "))
                .join(", "),
            ],
          ]),
          more("The method's options", () => facts(entries(s.config).map(([name, value]) => [name, told(value)]))),
        ),
      ],
    };
  }

  async function homePage() {
    const { runs: all } = await runs();
    if (all.length === 1) return summaryPage(0);
    return {
      title: "Runs",
      nodes: [
        el("h1", {}, plural(all.length, "run")),
        table(
          ["run", "benchmark", "reader", ">questions", "score", ">value", "95 % interval", ""],
          all.map((one, at) => [
            el("a", { href: link("run", at) }, `${nameOf(all, at)}`),
            [one.bench, one.data_state === "sample" && [" ", el("span", { class: "badge sample" }, "SAMPLE")]],
            one.reader,
            whole(one.n),
            one.primary,
            three(one.figure?.value),
            between(one.figure?.low, one.figure?.high),
            all.map((_, other) =>
              other > at
                ? [el("a", { href: link("compare", at, other) }, `compare with ${nameOf(all, other)}`), " "]
                : null,
            ),
          ]),
        ),
      ],
    };
  }

  // ---------------------------------------------------------------------------------------------------- page: compare

  const nameOf = (all, at) => `${String.fromCharCode(65 + (at % 26))} ${all[at].method}`;
  const FLIPS = [
    ["regressed", "right → wrong", "bad"],
    ["fixed", "wrong → right", "good"],
    ["both wrong", "wrong → wrong", "quiet"],
    ["both right", "right → right", "quiet"],
    ["not decided", "in one or both", "quiet"],
  ];
  const flip = (a, b) => (a < 0 || b < 0 ? 4 : a ? (b ? 3 : 0) : b ? 1 : 2);
  const SAME = [
    "bench",
    "data_digest",
    "subset",
    "track",
    "view",
    "budget",
    "items",
    "judge",
    "rubrics",
    "prompt",
    "options",
    "selection",
    "method",
    "reader",
    "embedder",
    "models",
    "seed",
    "identity",
  ];

  async function comparePage(one, two, params) {
    const [{ runs: all }, a, b, ha, hb] = await Promise.all([
      runs(),
      indexOf(one),
      indexOf(two),
      summaryOf(one),
      summaryOf(two),
    ]);
    const matched = [];
    for (let row = 0; row < a.ids.length; row++) {
      const other = b.at.get(formed(a.ids[row]));
      if (other !== undefined) matched.push([row, other, flip(a.right[row], b.right[other])]);
    }
    const tally = FLIPS.map((_, kind) => matched.filter((pair) => pair[2] === kind).length);
    const order = [0, 1, 2, 3, 4].flatMap((kind) => matched.filter((pair) => pair[2] === kind)); // what got worse first
    const path = link("compare", one, two);
    let rows = order;
    const list = new List("Questions of both runs", rowHeight(), (row, at) => {
      const [n, m, kind] = rows[at];
      const words = el("span", { class: "words" }, el("span", {}, a.ids[n]), el("span", {}, " "));
      row.append(
        el(
          "a",
          { href: link("pair", one, two, a.ids[n]) },
          el("span", { class: FLIPS[kind][2] }, FLIPS[kind][0]),
          words,
          el("span", { class: "side" }, a.names.category[a.category[n]]),
          el("span", { class: "n" }, ""),
          el("span", { class: "side broke" }, `${three(a.score?.[n])} → ${three(b.score?.[m])}`),
        ),
      );
      Promise.all([wordsOf(one, n), wordsOf(two, m)])
        .then(([[asked, gold, first], [, , second]]) => {
          words.firstChild.textContent = asked || a.ids[n];
          words.lastChild.textContent = `${gold || "no gold answer"} · A: ${first || "no answer"} · B: ${second || "no answer"}`;
        })
        .catch(failed);
    });
    const count = el("p", { class: "meta" });
    const changed = async (params) => {
      const mine = ++turn;
      const kind = params.get("flip") ? Number(params.get("flip")) : null;
      const category = params.get("category") ? Number(params.get("category")) : null;
      let found = order.filter(
        ([n, , k]) => (kind === null || k === kind) && (category === null || a.category[n] === category),
      );
      if (params.get("text")) {
        const hits = new Set(
          await searched(
            one,
            found.map(([n]) => n).sort((x, y) => x - y),
            params.get("text"),
            () => mine === turn,
          ),
        );
        found = found.filter(([n]) => hits.has(n));
      }
      if (mine !== turn) return;
      rows = found;
      lastList = {
        hash: `${path}${params.size ? `?${params}` : ""}`,
        run: one,
        other: two,
        rows: rows.map(([n]) => n),
        at: new Map(rows.map(([n], at) => [n, at])),
      };
      count.textContent = `${whole(rows.length)} of ${plural(order.length, "question")} in both runs`;
      say(count.textContent);
      list.node.scrollTop = 0;
      list.fill(rows.length);
    };
    const form = filtersIn(
      path,
      [
        field("Search (/)", {
          type: "search",
          name: "text",
          value: params.get("text") ?? "",
          placeholder: "question, answer of A, id",
        }),
        choice(
          "Change",
          "flip",
          FLIPS.map(([name], at) => [at, `${name} (${whole(tally[at])})`]),
          params,
          true,
        ),
        choice(
          "Category",
          "category",
          a.names.category.map((name, code) => [code, name || "(none)"]),
          params,
          true,
        ),
      ],
      (p) => changed(p).catch(failed),
    );
    const differ = SAME.filter(
      (name) => JSON.stringify(ha.summary[name] ?? null) !== JSON.stringify(hb.summary[name] ?? null),
    );
    const suspect = differ.filter((name) => SAME.indexOf(name) < SAME.indexOf("method"));
    const value = (head, name) => brief(told(head.summary[name] ?? "–"), 60);
    return {
      title: "Compare",
      list,
      nodes: [
        el("h1", {}, `A ${ha.summary.method} beside B ${hb.summary.method}`),
        el(
          "p",
          { class: "meta" },
          `right: A ${ha.score} ≥ ${ha.threshold}, B ${hb.score} ≥ ${hb.threshold} · ${plural(matched.length, "question")} in both, ${whole(a.ids.length - matched.length)} only in A, ${whole(b.ids.length - matched.length)} only in B`,
        ),
        (ha.score !== hb.score || ha.threshold !== hb.threshold) &&
          el(
            "p",
            { class: "note" },
            "The two runs are not decided by the same score; changes between them mean little.",
          ),
        suspect.length > 0 &&
          el(
            "p",
            { class: "note" },
            `Not alike in ${suspect.join(", ")}: the runs were not asked the same in the same way.`,
          ),
        el(
          "div",
          { class: "flips" },
          FLIPS.map(([name, words, kind], at) =>
            el(
              "button",
              {
                type: "button",
                onclick: () => {
                  form.elements.flip.value = form.elements.flip.value === String(at) ? "" : String(at);
                  form.requestSubmit();
                },
              },
              el("b", { class: kind }, whole(tally[at])),
              el("span", {}, name),
              el("span", { class: "meta" }, words),
            ),
          ),
        ),
        more("What differs between the runs", () =>
          table(
            ["", "A", "B"],
            SAME.map((name) => ({
              mark: differ.includes(name) ? "differs" : null,
              cells: [name, value(ha, name), value(hb, name)],
            })),
          ),
        ),
        form,
        count,
        list.node,
      ],
      after: changed(params),
    };
  }

  async function pairPage(one, two, id) {
    const [{ runs: all }, a, b, ha, hb] = await Promise.all([
      runs(),
      indexOf(one),
      indexOf(two),
      summaryOf(one),
      summaryOf(two),
    ]);
    const [n, m] = [a.at.get(id), b.at.get(id)];
    if (n === undefined || m === undefined) return missing(`Not in both runs: question ${id}.`);
    const [first, second] = await Promise.all([questionOf(one, n), questionOf(two, m)]);
    const list = lastList?.run === one && lastList.other === two && lastList.at.has(n) ? lastList : null;
    const at = list?.at.get(n);
    const to = (step) => {
      const next = list?.rows[at + step];
      return next === undefined ? null : link("pair", one, two, a.ids[next]);
    };
    steps = { before: list && to(-1), after: list && to(1), up: list?.hash ?? link("compare", one, two) };
    const kind = flip(a.right[n], b.right[m]);
    const side = async (question, head, run) =>
      el(
        "section",
        {
          class: question.right === true ? "isgood" : question.right === false ? "isbad" : null,
          "aria-label": nameOf(all, run),
        },
        el("h2", {}, el("a", { href: link("q", run, id) }, nameOf(all, run))),
        verdictOf(question, head),
        errorOf(question),
        answersOf(question),
        chainOf(question),
        evidenceOf(question, run),
        graphOf(question),
        scoresOf(question),
        section("Tokens and calls", costOf(question.spent)),
        more("What the reader saw and said", () => {
          const box = el("div");
          sawOf(question)
            .then((nodes) => box.append(...nodes))
            .catch(failed);
          return box;
        }),
      );
    return {
      title: brief(titleOf(first), 60),
      nodes: [
        crumbs(steps, list ? `${whole(at + 1)} of ${whole(list.rows.length)}` : ""),
        el("h1", {}, titleOf(first)),
        await askedOf(first),
        el(
          "p",
          { class: "verdict" },
          el("strong", { class: FLIPS[kind][2] }, FLIPS[kind][0]),
          el("span", { class: "meta" }, FLIPS[kind][1]),
          first.category && el("span", { class: "meta" }, `category ${first.category}`),
        ),
        el("div", { class: "pair" }, await side(first, ha, one), await side(second, hb, two)),
      ],
    };
  }

  // ----------------------------------------------------------------------------------------------------- page: memory

  async function memoriesPage(run) {
    const contexts = await load(`r${run}-contexts`);
    if (contexts.name.length === 1) return memoryPage(run, 0, new URLSearchParams());
    const list = new List("Contexts", rowHeight(), (row, at) =>
      row.append(
        el(
          "a",
          { href: link("memory", run, at) },
          el("span", { class: "side" }, whole(at + 1)),
          el(
            "span",
            { class: "words" },
            el("span", {}, contexts.name[at]),
            el("span", {}, `${plural(contexts.count[at], contexts.known[at] ? "item" : "known id")}`),
          ),
          el("span", { class: "side" }, plural(contexts.questions[at], "question")),
          el("span", { class: "n" }, ""),
          el("span", { class: "side" }, `${whole(contexts.right[at])} right`),
        ),
      ),
    );
    return {
      title: "Memory",
      list,
      nodes: [el("h1", {}, `Memory: ${plural(contexts.name.length, "context")}`), list.node],
      after: Promise.resolve().then(() => list.fill(contexts.name.length)),
    };
  }

  async function memoryPage(run, at, params) {
    const [contexts, index, { items: starts }] = await Promise.all([load(`r${run}-contexts`), indexOf(run), runs()]);
    if (!(at in contexts.name)) return missing("This run has no such context.");
    const [first, count] = [contexts.first[at], contexts.count[at]];
    const asked = index.at.get(params.get("q") ?? "");
    const question = asked === undefined ? null : await questionOf(run, asked);
    const rank = new Map((question?.evidence ?? []).map(([number], n) => [number, n + 1]));
    const isGold = new Set((question?.gold ?? []).map(([number]) => number));
    const recalled = new Array(count).fill(0),
      gold = new Array(count).fill(0);
    if (count) {
      for (let shard = place(starts, first); shard <= place(starts, first + count - 1); shard++) {
        const [r, g] = await load(`r${run}-use-${shard}`);
        r.forEach((n, k) => {
          const i = starts[shard] + k - first;
          if (i >= 0 && i < count) {
            recalled[i] = n;
            gold[i] = g[k];
          }
        });
      }
    }
    let rows = [];
    const marks = (i) => {
      const [used, wanted] = question
        ? [rank.has(first + i) && `recalled, rank ${rank.get(first + i)}`, isGold.has(first + i) && "★ gold"]
        : [recalled[i] > 0 && `recalled ${whole(recalled[i])}×`, gold[i] > 0 && `★ gold ${whole(gold[i])}×`];
      return el(
        "span",
        { class: "side marks" },
        wanted && el("span", { class: "goldmark" }, wanted),
        used && el("span", {}, used),
      );
    };
    const list = new List("Items in order of time", rowHeight(), (row, n) => {
      const i = rows[n];
      const when = el("span", { class: "side" }, `${whole(i + 1)}`),
        words = el("span", { class: "words" }, el("span", {}, "…"), el("span", {}, " "));
      row.classList.add("item");
      row.append(el("button", { type: "button", onclick: () => openItem(first + i) }, when, words, marks(i)));
      itemOf(first + i)
        .then((item) => {
          when.textContent = item.time?.replace("T", " ") ?? when.textContent;
          const said = (item.parts ?? []).map((part) => part.text ?? `▨ ${part.source || "picture"}`).join(" ");
          words.firstChild.textContent = [item.speaker, said].filter(Boolean).join(": ") || item.id;
          words.lastChild.textContent = [
            item.label ?? item.id,
            item.place,
            ...(item.derived ?? []).slice(0, 1).map(([, text]) => text),
          ]
            .filter(Boolean)
            .join(" · ");
        })
        .catch(failed);
    });
    const note = el("p", { class: "meta" });
    const changed = (params) => {
      const show = params.get("show") ?? "";
      const uses = (i) => (question ? rank.has(first + i) : recalled[i] > 0);
      const golds = (i) => (question ? isGold.has(first + i) : gold[i] > 0);
      rows = Array.from({ length: count }, (_, i) => i).filter(
        (i) => !show || (show === "recalled" ? uses(i) : show === "gold" ? golds(i) : golds(i) && !uses(i)),
      );
      note.textContent = `${whole(rows.length)} of ${plural(count, "item")}`;
      say(note.textContent);
      list.node.scrollTop = 0;
      list.fill(rows.length);
    };
    const path = link("memory", run, at);
    steps = {
      up: question ? link("q", run, question.id) : contexts.name.length > 1 ? link("memory", run) : link("run", run),
    };
    const controls = [
      choice(
        "Show",
        "show",
        [
          ["recalled", "recalled"],
          ["gold", "gold"],
          ["missed", "gold that was not recalled"],
        ],
        params,
      ),
      question && el("input", { type: "hidden", name: "q", value: formed(question.id) }),
    ];
    return {
      title: "Memory",
      list,
      nodes: [
        el(
          "div",
          { class: "crumbs" },
          el("a", { href: steps.up }, "← Back"),
          question && el("a", { href: path }, "Over all questions"),
        ),
        el("h1", {}, `Memory of ${contexts.name[at]}`),
        el(
          "p",
          { class: "meta" },
          question
            ? `For: ${brief(titleOf(question), 160)}`
            : `${plural(count, "item")} in order of time · ${plural(contexts.questions[at], "question")}, ${whole(contexts.right[at])} right · over all questions of this run`,
        ),
        !contexts.known[at] &&
          el(
            "p",
            { class: "note" },
            "The items of this context are not at hand: only ids that records hold are listed, in the order they were met. See the run's summary for why.",
          ),
        count > 0 && overview(recalled, gold, question ? { rank, isGold, first } : null),
        filtersIn(path, controls, changed),
        note,
        list.node,
      ],
      after: Promise.resolve().then(() => changed(params)),
    };
  }

  /* How often each stretch of the memory was recalled (up) and gold (down). */
  function overview(recalled, gold, only) {
    const size = Math.min(recalled.length, 200);
    const up = new Array(size).fill(0),
      down = new Array(size).fill(0);
    recalled.forEach((n, i) => {
      const bin = Math.floor((i * size) / recalled.length);
      up[bin] += only ? Number(only.rank.has(only.first + i)) : n;
      down[bin] += only ? Number(only.isGold.has(only.first + i)) : gold[i];
    });
    const step = 1000 / size,
      highest = [Math.max(1, ...up), Math.max(1, ...down)]; // each side has its own scale
    const bars = (counts, above) =>
      counts.map((n, bin) => {
        const high = (36 * n) / highest[above ? 0 : 1];
        return (
          n > 0 &&
          svg("rect", {
            class: above ? "up" : "gold",
            x: (bin + 0.1) * step,
            width: 0.8 * step,
            y: above ? 40 - high : 42,
            height: high,
          })
        );
      });
    return [
      svg(
        "svg",
        {
          class: "strip",
          viewBox: "0 0 1000 80",
          role: "img",
          "aria-label": "How often each stretch of the memory was recalled and was gold",
        },
        svg("line", { class: "rail", x1: 0, x2: 1000, y1: 41, y2: 41 }),
        bars(up, true),
        bars(down, false),
      ),
      el(
        "p",
        { class: "legend" },
        el("span", {}, `above the line: recalled${only ? "" : `, at most ${whole(highest[0])}×`}`),
        el("span", { class: "goldmark" }, `below: gold${only ? "" : `, at most ${whole(highest[1])}×`}`),
        el("span", {}, "left to right: order of time"),
      ),
    ];
  }

  async function openItem(number) {
    const item = await itemOf(number);
    const box = $("window");
    box.setAttribute("aria-label", `Item ${item.id}`);
    box.replaceChildren(
      el("h2", { class: "mono" }, item.id),
      el(
        "p",
        { class: "meta" },
        [headOf(item), item.session && `session ${item.session}`, item.kind].filter(Boolean).join(" · "),
      ),
      ...(item.parts
        ? await partsOf(item.parts, item.derived)
        : [el("p", { class: "quiet" }, "Only its id is known.")]
      ).filter(Boolean),
      derivedOf(item.derived ?? []) ?? "",
      el("form", { method: "dialog" }, el("button", {}, "Close")),
    );
    box.showModal();
  }

  // ---------------------------------------------------------------------------------------------------------- routing

  let steps = {};

  const missing = (words) => ({
    title: "Not found",
    nodes: [el("h1", {}, "Not found"), el("p", {}, words), el("p", {}, el("a", { href: "#/" }, "To the start"))],
  });
  function failed(error) {
    $("main").prepend(el("p", { class: "note", role: "alert" }, String(error?.message ?? error)));
  }

  function pageOf([kind, ...rest], params, all) {
    const run = Number(rest[0]),
      other = Number(rest[1]);
    if (!kind) return homePage();
    if (!(run in all)) return missing("This folder has no such run.");
    if (kind === "run") return rest[1] === "questions" ? questionsPage(run, params) : summaryPage(run);
    if (kind === "q" && rest.length === 2) return questionPage(run, rest[1]);
    if (kind === "memory") return rest.length > 1 ? memoryPage(run, other, params) : memoriesPage(run);
    if (kind === "compare" && other in all) return comparePage(run, other, params);
    if (kind === "pair" && other in all) return pairPage(run, other, rest[2] ?? "");
    return missing("There is no such page.");
  }

  function navigation(all, [kind, ...rest]) {
    const run = Number(rest[0] ?? 0),
      two = ["compare", "pair"].includes(kind);
    const here =
      {
        q: "questions",
        run: rest[1] === "questions" ? "questions" : "summary",
        memory: "memory",
        "": all.length === 1 ? "summary" : "",
      }[kind ?? ""] ?? "";
    const to = (name, href, words) => el("a", { href, "aria-current": !two && here === name ? "page" : null }, words);
    const mine = (at) => [
      all.length > 1 &&
        el(
          "a",
          { class: "of", href: link("run", at), "aria-current": !two && kind && at === run ? "true" : null },
          nameOf(all, at),
        ),
    ];
    $("nav").replaceChildren(
      ...[
        all.map((_, at) => mine(at)),
        !two &&
          (kind || all.length === 1) && [
            to("summary", link("run", run), "Summary"),
            to("questions", link("run", run, "questions"), "Questions"),
            to("memory", link("memory", run), "Memory"),
          ],
        all.length === 2 && el("a", { href: link("compare", 0, 1), "aria-current": two ? "page" : null }, "Compare"),
      ]
        .flat(9)
        .filter(Boolean),
    );
  }

  let drawing = 0;
  async function route() {
    const mine = ++drawing;
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    try {
      const pieces = path.split("/").filter(Boolean).map(decodeURIComponent);
      const { runs: all } = await runs();
      steps = {};
      const page = await pageOf(pieces, new URLSearchParams(query ?? ""), all);
      if (mine !== drawing) return;
      navigation(all, pieces);
      shownList = page.list ?? null;
      document.title = `${page.title} · memharness`;
      $("main").replaceChildren(...page.nodes.flat(9).filter(Boolean));
      scrollTo(0, 0);
      const heading = $("main").querySelector("h1");
      heading?.setAttribute("tabindex", "-1");
      if (mine > 1) heading?.focus({ preventScroll: true }); // the first page begins at its top, with the skip link
      await page.after;
      shownList?.show();
    } catch (error) {
      if (mine === drawing) {
        $("main").replaceChildren(el("h1", {}, "This page cannot be shown"));
        failed(error);
      }
    } finally {
      document.documentElement.dataset.ready = String(mine); // for those who wait: tests and measurements
    }
  }

  // ------------------------------------------------------------------------------------------------- keys and theme

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key === "Escape") {
      if (typing) typing.blur();
      else if (steps.up) location.hash = steps.up;
      return;
    }
    if (typing) return;
    const down = event.key === "j" || event.key === "ArrowDown",
      up = event.key === "k" || event.key === "ArrowUp";
    if (event.key === "/") document.querySelector("input[type=search]")?.focus();
    else if (event.key === "?") $("help").showModal();
    else if ((down || up) && shownList) shownList.step(down ? 1 : -1);
    else if (event.key === "j" && steps.after) location.hash = steps.after;
    else if (event.key === "k" && steps.before) location.hash = steps.before;
    else return; // arrows scroll a page without a list, as everywhere
    event.preventDefault();
  }

  const THEMES = ["auto", "light", "dark"];
  function theme(name) {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    $("theme").title = `Theme: ${name === "auto" ? "as the system" : name}`;
    try {
      localStorage.setItem("memharness-theme", name);
    } catch {
      /* a browser may keep nothing for files */
    }
  }
  function themeKept() {
    try {
      return localStorage.getItem("memharness-theme");
    } catch {
      return null;
    }
  }

  theme(THEMES.includes(themeKept()) ? themeKept() : "auto");
  $("theme").addEventListener("click", () => {
    theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % 3]);
    say($("theme").title);
  });
  $("ask").addEventListener("click", () => $("help").showModal());
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("main").focus();
  });
  addEventListener("keydown", keys);
  addEventListener("hashchange", route);
  addEventListener("resize", () => shownList?.show());
  route();
})();

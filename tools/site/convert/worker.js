// The browser's Python, in a thread of its own. It is started from a blob, so that the policy of
// the page holds for it as well: it may ask for files beside the page and for nothing else.

const IN = "/in";
const OUT = "/out";
let starting;

async function start(base) {
  const { loadPyodide } = await import(`${base}pyodide/pyodide.mjs`);
  const python = await loadPyodide({ indexURL: `${base}pyodide/` });
  await python.loadPackage(["serde-relay"], { checkIntegrity: true });
  const answer = await fetch(`${base}browser.py`);
  if (!answer.ok) throw new Error(`browser.py: ${answer.status}`);
  python.FS.writeFile("/browser.py", await answer.text());
  python.runPython("import sys; sys.path.insert(0, '/'); import json, browser");
  return python;
}

function take(python, files) {
  const { FS } = python;
  if (FS.analyzePath(IN).exists) {
    for (const name of FS.readdir(IN)) {
      if (name !== "." && name !== "..") FS.unlink(`${IN}/${name}`);
    }
  } else {
    FS.mkdir(IN);
  }
  for (const { name, bytes } of files) {
    FS.writeFile(`${IN}/${name}`, new Uint8Array(bytes));
  }
}

function call(python, name, given) {
  const asked = python.toPy(given);
  try {
    python.globals.set("asked", asked);
    return JSON.parse(python.runPython(`json.dumps(browser.${name}(**asked))`));
  } finally {
    asked.destroy();
  }
}

const actions = {
  look(python, { files, shapes }) {
    if (files) take(python, files);
    return call(python, "look", { folder: IN, shapes });
  },
  convert(python, { name, target, shapes, allow }) {
    const found = call(python, "convert", { folder: IN, name, target, out: OUT, shapes, allow });
    const made = (found.files || []).map((file) => {
      return { name: file, bytes: python.FS.readFile(`${OUT}/${file}`).buffer };
    });
    return { ...found, files: made };
  },
};

self.onmessage = async ({ data }) => {
  try {
    starting ??= start(data.base);
    const answer = actions[data.action](await starting, data);
    self.postMessage({ answer }, (answer.files || []).map((each) => each.bytes));
  } catch (error) {
    self.postMessage({ fault: String(error.message || error) });
  }
};

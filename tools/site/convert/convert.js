// The page: takes files, asks the worker, shows what it answers. Nothing is sent anywhere.

const base = new URL("convert/", document.baseURI).href;
const part = (id) => document.getElementById(id);
let worker;
let model;
let addresses = [];

async function startWorker() {
  const text = await (await fetch(`${base}worker.js`)).text();
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return new Worker(address, { type: "module" });
}

async function ask(message, transferred = []) {
  worker ??= startWorker();
  const running = await worker;
  return new Promise((resolve, reject) => {
    running.onmessage = ({ data }) => {
      if (data.fault === undefined) resolve(data.answer);
      else reject(new Error(data.fault));
    };
    running.onerror = (event) => reject(new Error(event.message || "the worker did not start"));
    running.postMessage({ base, ...message }, transferred);
  });
}

function say(text, kind = "") {
  part("said").textContent = text;
  part("said").className = kind;
}

async function busy(text, work) {
  say(text, "busy");
  for (const each of document.querySelectorAll("button, input, select")) each.disabled = true;
  try {
    await work();
  } catch (error) {
    say(error.message, "bad");
  } finally {
    for (const each of document.querySelectorAll("button, input, select")) each.disabled = false;
  }
}

function forget() {
  for (const address of addresses) URL.revokeObjectURL(address);
  addresses = [];
  part("made").replaceChildren();
  part("report").textContent = "";
}

function show(found) {
  part("what").hidden = false;
  if (found.refused !== undefined) {
    model = undefined;
    part("view").srcdoc = "";
    part("view").hidden = true;
    part("convert").hidden = true;
    say(found.refused, "bad");
    return;
  }
  model = found.name;
  part("name").textContent = found.name;
  part("view").srcdoc = found.page;
  part("view").hidden = false;
  part("convert").hidden = false;
  say("");
}

async function take(list) {
  const files = [...list];
  if (!files.length) return;
  forget();
  await busy("Reading… Python is fetched the first time, which may take a minute.", async () => {
    const read = await Promise.all(
      files.map(async (file) => ({ name: file.name, bytes: await file.arrayBuffer() })),
    );
    const message = { action: "look", files: read, shapes: part("shapes").value };
    show(await ask(message, read.map((each) => each.bytes)));
  });
}

async function convert() {
  forget();
  await busy("Converting…", async () => {
    const given = {
      name: model,
      target: part("target").value,
      shapes: part("shapes").value,
      allow: part("allow").value,
    };
    const found = await ask({ action: "convert", ...given });
    if (found.refused !== undefined) {
      say(found.refused, "bad");
      return;
    }
    for (const { name, bytes } of found.files) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([bytes]));
      addresses.push(link.href);
      link.download = name;
      link.textContent = `${name} (${bytes.byteLength.toLocaleString("en")} bytes)`;
      part("made").append(link);
    }
    part("report").textContent = found.report;
    say("Done; the files are below.", "good");
  });
}

if (location.protocol === "file:") {
  say("Browsers let a page that was opened as a file read nothing: it needs a web server.", "bad");
}
part("files").addEventListener("change", (event) => take(event.target.files));
part("again").addEventListener("click", () =>
  busy("Reading…", async () => show(await ask({ action: "look", shapes: part("shapes").value }))),
);
part("start").addEventListener("click", convert);
const drop = part("drop");
for (const kind of ["dragenter", "dragover"]) {
  drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
}
for (const kind of ["dragleave", "drop"]) {
  drop.addEventListener(kind, () => drop.classList.remove("over"));
}
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  take(event.dataTransfer.files);
});

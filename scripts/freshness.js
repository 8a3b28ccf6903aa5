// Checks whether dependencies and build of this checkout are current. Runs at every start, within a few milliseconds.

const builtin = (name) => process.getBuiltinModule?.(name) ?? import(name);
const { readdirSync, readFileSync, statSync, writeFileSync } = await builtin('node:fs');
const { join } = await builtin('node:path');

/** Inputs of the build besides `src/`. */
const BUILD_INPUTS = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  ...['build', 'bundle', 'studio', 'types'].map((name) => `scripts/${name}.js`),
];
export const STAMP_FILE = 'build.json';

/** npm writes its hidden lockfile last, so an interrupted install is detected. */
export function dependenciesCurrent(root) {
  const lockFile = join(root, 'package-lock.json');
  const present = join(root, 'node_modules', '.package-lock.json');
  const [wantedAt, presentAt] = [lockFile, present].map(modifiedAt);
  if (presentAt === null) return false;
  // A git checkout changes the time but not the content, so the content decides.
  return wantedAt === null || presentAt >= wantedAt || samePackages(lockFile, present);
}

function samePackages(wantedFile, presentFile) {
  const [wanted, present] = [wantedFile, presentFile].map((file) => readJson(file)?.packages ?? {});
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const installed = present[path];
    if (!installed) return entry.optional === true;
    return installed.version === entry.version && installed.integrity === entry.integrity;
  });
}

/** Compares times and sizes with the build stamp; if they differ, the content decides. */
export async function buildCurrent(root) {
  const stamp = readJson(join(root, 'dist', STAMP_FILE));
  if (!stamp) return false;
  const files = listInputs(root);
  const times = listTimes(files);
  if (stamp.times === times) return true;
  if (stamp.content !== (await hashContent(root, files))) return false;
  writeStamp(join(root, 'dist'), { times, content: stamp.content });
  return true;
}

/** Taken before a build, so that an edit during the build triggers another one. */
export async function takeStamp(root) {
  const files = listInputs(root);
  return { times: listTimes(files), content: await hashContent(root, files) };
}

export function writeStamp(folder, stamp) {
  try {
    writeFileSync(join(folder, STAMP_FILE), `${JSON.stringify(stamp)}\n`);
  } catch {
    // The checkout is read-only, so the content is compared again at the next start.
  }
}

function listInputs(root) {
  const files = BUILD_INPUTS.map((name) => ({ name, ...stats(join(root, name)) }));
  const base = root.replace(/\/?$/, '/');
  const visit = (folder) => {
    for (const entry of readdirSync(base + folder, { withFileTypes: true })) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) visit(name);
      else files.push({ name, ...stats(base + name) });
    }
  };
  visit('src');
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function stats(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  return { size: found?.size ?? -1, mtimeMs: found?.mtimeMs ?? -1 };
}

/** As text, because loading a hash function would cost more than comparing it. */
function listTimes(files) {
  return files.map(({ name, size, mtimeMs }) => `${name} ${size} ${mtimeMs}`).join('\n');
}

async function hashContent(root, files) {
  const { createHash } = await import('node:crypto');
  const hash = createHash('sha256');
  for (const { name, size } of files) {
    hash.update(`${name} ${size}\n`);
    if (size >= 0) hash.update(readFileSync(join(root, name)));
  }
  return hash.digest('base64url');
}

function modifiedAt(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null;
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

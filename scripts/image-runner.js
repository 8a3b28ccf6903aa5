// `npm run image:runner [-- --tag svc-runner] [--local] [--engine podman] [-- <engine options>]`: builds the image of plugin
// containers from docker/runner/Dockerfile, or with --local (or without a registry) from this machine's Node.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { pinnedNode } from './run.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  options: {
    tag: { type: 'string', default: 'svc-runner' },
    engine: { type: 'string' },
    local: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const engine = values.engine ?? ['docker', 'podman'].find(isInstalled);
if (!engine) fail('Neither docker nor podman is installed.');

if (!values.local && run([...positionals, 'build', '--tag', values.tag, join(root, 'docker', 'runner')]))
  done();
if (!values.local) console.error("image: the registry is unreachable; using this machine's Node");
importLocal();
done();

/** Imports an archive of Node, its loader and its libraries as an image. */
function importLocal() {
  if (process.platform !== 'linux') fail('An image from the local Node needs Linux.');
  const node = realpathSync(existsSync(pinnedNode(root)) ? pinnedNode(root) : process.execPath);
  const folder = mkdtempSync(join(tmpdir(), 'svc-image-'));
  try {
    const files = join(folder, 'rootfs');
    for (const name of ['tmp', 'proc', 'sys', 'dev', 'etc'])
      mkdirSync(join(files, name), { recursive: true });
    // Podman applies the mode of this folder to its tmpfs.
    chmodSync(join(files, 'tmp'), 0o1777);
    copy(node, join(files, 'usr/local/bin/node'));
    for (const library of librariesOf(node)) copy(library, join(files, library));
    const archive = join(folder, 'rootfs.tar');
    // Files are owned by root inside the image.
    execFileSync('tar', ['-C', files, '--numeric-owner', '--owner=0', '--group=0', '-cf', archive, '.']);
    const imported = run([...positionals, 'import', archive, values.tag]);
    if (!imported) fail(`${engine} could not import the image.`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function librariesOf(program) {
  const text = execFileSync('ldd', [program], { encoding: 'utf8' });
  return [...text.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path]) => path);
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(realpathSync(from), to);
}

function isInstalled(program) {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0;
}

function run(args) {
  return spawnSync(engine, args, { stdio: ['ignore', 2, 2] }).status === 0;
}

function done() {
  console.log(`${values.tag} is ready`);
  process.exit(0);
}

function fail(reason) {
  console.error(`image: ${reason}`);
  process.exit(1);
}

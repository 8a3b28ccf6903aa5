import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { makeImageFolders } from './image-folders.ts';

const run = promisify(execFile);

/** What runs the cluster's containers here: the engine, its DNS for names of containers, and the programs inside. */
const PROGRAMS = ['podman', 'runc', 'podman-compose', 'catatonit', 'haproxy'];
const DNS_PLUGIN = '/usr/lib/cni/dnsname';

/** Why `compose.cluster.yaml` cannot run on this machine; undefined if it can. */
export function composeMissing(postgresPrograms: string | null): string | undefined {
  const absent = PROGRAMS.find(
    (program) =>
      spawnSync(program, [program === 'haproxy' ? '-v' : '--version'], { stdio: 'ignore' }).status !== 0,
  );
  if (absent) return `${absent} is not installed: apt install podman runc podman-compose catatonit haproxy`;
  if (spawnSync('test', ['-x', DNS_PLUGIN]).status !== 0)
    return 'Podman finds no containers by name: apt install golang-github-containernetworking-plugin-dnsname';
  if (postgresPrograms === null) return 'PostgreSQL is not installed: apt install postgresql';
  return process.getuid?.() === 0 ? undefined : 'the engine of this test needs root';
}

/**
 * The cluster of `compose.cluster.yaml`, run by podman-compose. No registry is needed: the images are stand-ins with the
 * names of the real ones, whose programs are those of this machine.
 */
export class ComposeCluster {
  readonly #folder = mkdtempSync(join(tmpdir(), 'svc-compose-'));
  readonly #env: NodeJS.ProcessEnv;
  readonly #postgresPrograms: string;
  #output = '';

  constructor(postgresPrograms: string, environment: Record<string, string>) {
    this.#postgresPrograms = postgresPrograms;
    this.#env = { ...process.env, ...environment, ...this.#configureEngine() };
    this.#makeImages();
  }

  async up(): Promise<void> {
    // Its exit code is 0 even if containers could not be made.
    const { stdout, stderr } = await this.#compose('up', '--detach', '--no-build');
    this.#output = `${stdout}${stderr}`;
  }

  /** Ends the processes of a service at once, as the loss of its machine would. */
  async kill(service: string): Promise<void> {
    await this.#podman('kill', '--signal', 'KILL', this.#containerOf(service));
  }

  /** The end of the log of all containers, for messages of failed tests. */
  async logs(): Promise<string> {
    const { stdout } = await this.#podman('ps', '--all', '--format', '{{.Names}} {{.Status}}');
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ')[0]!);
    const all = await Promise.all(
      names.map(async (name) => {
        const log = await this.#podman('logs', '--tail', '15', name).catch((error) => ({
          stdout: '',
          stderr: String(error),
        }));
        return `--- ${name}\n${log.stdout}${log.stderr}`;
      }),
    );
    return `${this.#output}\n${stdout}${all.join('\n')}`;
  }

  async dispose(): Promise<void> {
    await this.#compose('down', '--volumes', '--timeout', '1').catch(() => {});
    const { stdout } = await this.#podman('ps', '--all', '--quiet');
    const left = stdout.trim().split('\n').filter(Boolean);
    if (left.length > 0) await this.#podman('rm', '--force', '--time', '0', ...left);
    await this.#podman('system', 'reset', '--force').catch(() => {});
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #containerOf = (service: string): string => `cluster_${service}_1`;

  #compose(...words: string[]) {
    const files = [
      '-f',
      join(packageRoot, 'compose.cluster.yaml'),
      '-f',
      join(this.#folder, 'programs.yaml'),
    ];
    return run('podman-compose', ['-p', 'cluster', ...files, ...words], { env: this.#env, cwd: packageRoot });
  }

  #podman(...words: string[]) {
    return run('podman', words, { env: this.#env, cwd: this.#folder });
  }

  /** Returns the environment of an engine with a store, networks and sockets of its own. */
  #configureEngine(): NodeJS.ProcessEnv {
    const at = (name: string) => join(this.#folder, name);
    writeFileSync(
      at('containers.conf'),
      `[containers]
default_ulimits=["nofile=1024:1024","nproc=4096:4096"]
[network]
network_config_dir="${at('networks')}"
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
tmp_dir="${at('tmp')}"
`,
    );
    writeFileSync(
      at('storage.conf'),
      `[storage]\ndriver="vfs"\ngraphroot="${at('root')}"\nrunroot="${at('run')}"\n`,
    );
    return { CONTAINERS_CONF: at('containers.conf'), CONTAINERS_STORAGE_CONF: at('storage.conf') };
  }

  #makeImages(): void {
    const rootfs = join(this.#folder, 'rootfs');
    makeImageFolders(rootfs, ['entry']);
    chmodSync(join(rootfs, 'tmp'), 0o1777);
    chownSync(join(rootfs, 'var/lib/svc'), 1000, 1000);
    writeFileSync(join(rootfs, 'entry/postgres'), postgresEntry(this.#postgresPrograms), { mode: 0o755 });
    const node = '/opt/svc/node_modules/node/bin';
    const images: Record<string, string[]> = {
      'docker.io/library/postgres:18': ['ENTRYPOINT ["/entry/postgres"]', 'VOLUME /var/lib/postgresql'],
      'docker.io/library/haproxy:3.2': [
        'ENTRYPOINT ["haproxy","-W","-f","/usr/local/etc/haproxy/haproxy.cfg"]',
      ],
      svc: [
        `ENV PATH=/opt/svc/bin:${node}:/usr/sbin:/usr/bin`,
        ...['NODE_ENV=production', 'SVC_HOME=/var/lib/svc/data', 'SVC_GATEWAY_HOST=0.0.0.0'].map(
          (each) => `ENV ${each}`,
        ),
        ...['USER 1000:1000', 'WORKDIR /project', 'VOLUME /var/lib/svc', 'ENTRYPOINT ["svc"]'],
      ],
    };
    const archive = join(this.#folder, 'rootfs.tar');
    execFileSync('tar', ['-C', rootfs, '-cf', archive, '.']);
    for (const [name, changes] of Object.entries(images))
      execFileSync(
        'podman',
        ['import', ...changes.flatMap((change) => ['--change', change]), archive, name],
        {
          env: this.#env,
          stdio: ['ignore', 'ignore', 'pipe'],
        },
      );
    writeFileSync(join(this.#folder, 'programs.yaml'), overrides());
  }
}

/** Gives the stand-in images the programs of this machine. */
function overrides(): string {
  const programs = ['bin', 'sbin', 'lib', 'lib64', 'share'].map((name) => `"/usr/${name}:/usr/${name}:ro"`);
  const service = (name: string, more: readonly string[] = []): string =>
    `  ${name}:\n    volumes: [${[...programs, ...more].join(', ')}]\n`;
  const platform = [`"${packageRoot}:/opt/svc:ro"`];
  const nodes = ['migrate', 'node1', 'node2'].map((name) => service(name, platform));
  return `services:\n${[service('postgres'), ...nodes, service('haproxy')].join('')}`;
}

/** Does for an empty volume what the entry point of the official image does. */
function postgresEntry(programs: string): string {
  return `#!/bin/sh
set -e
export PATH=${programs}:/usr/sbin:/usr/bin
as="setpriv --reuid postgres --regid postgres --clear-groups"
data=/var/lib/postgresql/data
if [ ! -s $data/PG_VERSION ]; then
  mkdir -p $data /run/postgresql && chown postgres $data /run/postgresql
  printf %s "$POSTGRES_PASSWORD" > /run/password && chown postgres /run/password
  $as initdb -D $data -U "$POSTGRES_USER" --pwfile /run/password -A scram-sha-256 -E UTF8 --locale C.UTF-8 > /dev/null
  echo 'host all all all scram-sha-256' >> $data/pg_hba.conf
  echo "create database \\"$POSTGRES_DB\\"" | $as postgres --single -D $data postgres > /dev/null
fi
exec $as postgres -D $data -c listen_addresses='*' -k /tmp
`;
}

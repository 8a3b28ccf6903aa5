import { readFileSync, realpathSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import type { ExecutionRequest, PlatformConfig } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import { entryFile } from '../../../kit/paths.ts';
import { isInside } from '../../inside.ts';
import { scrubEnvironment } from '../../sandbox/environment.ts';
import type { Grants } from '../../sandbox/grants.ts';
import { hasRawNetwork, nodeFlags } from '../../sandbox/node-flags.ts';
import type { ContainerSpec } from './engine.ts';
import { GATEWAY_ENV, GATEWAY_SOCKET } from './gateway-address.ts';

const MEGABYTE = 1024 * 1024;
/** In every runner image. */
const NODE = '/usr/local/bin/node';
const TMP = 'rw,noexec,nosuid,nodev,size=64m';
/** What Podman would else add to a read-only root, writable and without a limit. */
const SEALED = 'ro,noexec,nosuid,nodev,size=64k';
const SHM_BYTES = 16 * MEGABYTE;
/** Nobody, on every Linux. */
const NOBODY = '65534:65534';

export type ContainerConfig = PlatformConfig['execution']['container'];

/** What a container is given to call the platform by, and what ends it. */
export interface ContainerAccess {
  env: Record<string, string>;
  /** A Unix socket of the gateway, to be mounted. */
  socket?: string;
  end(): Promise<void>;
}

export interface SpecInput {
  request: ExecutionRequest;
  /** The plugin's folder as a real path. */
  root: string;
  grants: Grants;
  config: ContainerConfig;
  labels: Record<string, string>;
  environment: NodeJS.ProcessEnv;
  access: Pick<ContainerAccess, 'env' | 'socket'>;
}

export function memoryMbOf(config: ContainerConfig, { permissions }: ExecutionRequest): number {
  return Math.min(config.memoryMb, permissions.quotas?.memoryMb ?? config.memoryMb);
}

/**
 * A container for one execution. Files lie inside where they lie outside, read-only, so that no path needs translating;
 * Node's permission model holds inside as well. @spec docs/security.md "Containers"
 */
export async function containerSpec(input: SpecInput): Promise<ContainerSpec> {
  const { request, root, grants, config, labels, environment, access } = input;
  const { permissions } = request;
  await refuseEngineSocket(grants, config.socket);
  const memoryMb = memoryMbOf(config, request);
  // The container has no network but what its namespace has; the gateway's socket needs the same permission of Node.
  const flags = nodeFlags(grants, { ...permissions, network: ['*'] }, memoryMb);
  const env = {
    ...scrubEnvironment(permissions, environment),
    HOME: '/tmp',
    ...access.env,
    ...(access.socket ? GATEWAY_ENV : {}),
  };
  return {
    Image: config.image,
    Entrypoint: [NODE],
    Cmd: [...flags, realpathSync(entryFile('runner')), '--stdio'],
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    User: await userFor(root),
    WorkingDir: root,
    Hostname: 'svc-runner',
    Labels: labels,
    OpenStdin: true,
    StdinOnce: true,
    StopTimeout: 0,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: {
      NetworkMode: hasRawNetwork(permissions) ? config.network : 'none',
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', ...(isEnforcing() ? ['label=disable'] : [])],
      Privileged: false,
      Memory: memoryMb * MEGABYTE,
      // The same figure as for memory: no swap beside it.
      MemorySwap: memoryMb * MEGABYTE,
      PidsLimit: config.pidsLimit,
      ...(config.cpus === null ? {} : { NanoCpus: Math.round(config.cpus * 1e9) }),
      Tmpfs: { '/tmp': TMP, '/run': SEALED, '/var/tmp': SEALED },
      ShmSize: SHM_BYTES,
      Mounts: [...mountsOf(grants), ...(access.socket ? [mount(access.socket, GATEWAY_SOCKET, true)] : [])],
      // Frames carry inputs and results: they belong into no file of the engine.
      LogConfig: { Type: 'none' },
    },
  };
}

/** Code that reaches the engine is root on the machine; a read-only mount does not keep it from connecting. */
async function refuseEngineSocket({ read, write }: Grants, socket: string): Promise<void> {
  const real = await realpath(socket).catch(() => socket);
  const path = [...read, ...write].find((granted) => isInside(granted, real));
  if (path === undefined) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `The path ${path} cannot be granted: it holds the container engine's socket ${socket}. Name a narrower path in permissions.fs.`,
    { details: { path, socket } },
  );
}

function mountsOf({ read, write, links }: Grants): object[] {
  const mounts = [
    ...read.map((path) => mount(path, path, true)),
    ...links.map(({ path, target }) => mount(target, path, true)),
    ...write.map((path) => mount(path, path, false)),
  ];
  const byTarget = new Map(mounts.map((entry) => [entry.Target, entry]));
  // Outer folders first: a mount hides what was mounted below it before.
  return [...byTarget.values()].sort((a, b) => (a.Target < b.Target ? -1 : 1));
}

function mount(source: string, target: string, readOnly: boolean) {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: readOnly };
}

/** SELinux lets a container neither read a plugin's folder nor connect to a socket of the gateway under its own label. */
function isEnforcing(): boolean {
  try {
    return readFileSync('/sys/fs/selinux/enforce', 'utf8').trim() === '1';
  } catch {
    return false;
  }
}

/**
 * Never root where it can be avoided: the owner of the plugin's folder, else nobody. A folder of root that others may
 * not read leaves root, which without any capability reads its own files and no others.
 */
async function userFor(root: string): Promise<string> {
  const { uid, gid, mode } = await stat(root);
  if (uid !== 0) return `${uid}:${gid}`;
  return (mode & 0o005) === 0o005 ? NOBODY : '0:0';
}

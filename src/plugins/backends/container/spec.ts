import { readFileSync, realpathSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import type { ExecutionRequest, PlatformConfig } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { entryFile } from '../../../kit/files/paths.ts';
import { isInside } from '../../inside.ts';
import { scrubEnvironment } from '../../sandbox/environment.ts';
import type { Grants } from '../../sandbox/grants.ts';
import { hasRawNetwork, nodeFlags } from '../../sandbox/node-flags.ts';
import type { ContainerSpec } from './engine.ts';
import { GATEWAY_ENV, GATEWAY_SOCKET } from './gateway-address.ts';

const MEGABYTE = 1024 * 1024;
/** Path of Node in every runner image. */
const NODE = '/usr/local/bin/node';
const TMP = 'rw,noexec,nosuid,nodev,size=64m';
/** Mount options of `/run` and `/var/tmp`. By default, Podman mounts them writable and without a size limit. */
const SEALED = 'ro,noexec,nosuid,nodev,size=64k';
const SHM_BYTES = 16 * MEGABYTE;
/** User and group id of the unprivileged user. */
const NOBODY = '65534:65534';

export type ContainerConfig = PlatformConfig['execution']['container'];

/** Environment and socket with which a container can use the platform. `end` revokes the access. */
export interface ContainerAccess {
  env: Record<string, string>;
  /** Path of the gateway's Unix socket, which is mounted in the container. */
  socket?: string;
  end(): Promise<void>;
}

export interface SpecInput {
  request: ExecutionRequest;
  /** Path of the plugin's folder, with symbolic links resolved. */
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
 * Returns the container specification of an execution. Granted files have the same paths in the container as on the
 * host. @spec docs/security.md "Containers"
 */
export async function containerSpec(input: SpecInput): Promise<ContainerSpec> {
  const { request, root, grants, config, labels, environment, access } = input;
  const { permissions } = request;
  await refuseEngineSocket(grants, config.socket);
  const memoryMb = memoryMbOf(config, request);
  // Node's own network check is switched off, because it would block the gateway's socket. The container's network
  // restricts connections instead.
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
      // Limit for memory plus swap. The same value as `Memory` disables swap.
      MemorySwap: memoryMb * MEGABYTE,
      PidsLimit: config.pidsLimit,
      ...(config.cpus === null ? {} : { NanoCpus: Math.round(config.cpus * 1e9) }),
      Tmpfs: { '/tmp': TMP, '/run': SEALED, '/var/tmp': SEALED },
      ShmSize: SHM_BYTES,
      Mounts: [...mountsOf(grants), ...(access.socket ? [mount(access.socket, GATEWAY_SOCKET, true)] : [])],
      // The container's output contains inputs and results, which must not be written to the engine's log files.
      LogConfig: { Type: 'none' },
    },
  };
}

/**
 * Rejects grants that include the engine's socket. A client of this socket can become root, even through a read-only
 * mount.
 */
async function refuseEngineSocket({ read, write }: Grants, socket: string): Promise<void> {
  const real = await realpath(socket).catch(() => socket);
  const path = [...read, ...write].find((granted) => isInside(granted, real));
  if (path === undefined) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `The path ${path} cannot be granted: it contains the container engine's socket ${socket}. Grant a narrower path in permissions.fs.`,
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
  // Outer folders are mounted first, because a mount hides earlier mounts below it.
  return [...byTarget.values()].sort((a, b) => (a.Target < b.Target ? -1 : 1));
}

function mount(source: string, target: string, readOnly: boolean) {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: readOnly };
}

/** Returns true if SELinux is enforcing. Its labels would deny the container access to mounted files and sockets. */
function isEnforcing(): boolean {
  try {
    return readFileSync('/sys/fs/selinux/enforce', 'utf8').trim() === '1';
  } catch {
    return false;
  }
}

/**
 * Returns the user and group of the plugin's folder. A folder of root gets the unprivileged user, or root if other
 * users cannot read the folder.
 */
async function userFor(root: string): Promise<string> {
  const { uid, gid, mode } = await stat(root);
  if (uid !== 0) return `${uid}:${gid}`;
  return (mode & 0o005) === 0o005 ? NOBODY : '0:0';
}

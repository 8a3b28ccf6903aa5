import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface FrontEnd {
  child: ChildProcess;
  port: number;
}

export interface FrontEndOptions {
  /** Folder for configs and logs. */
  folder: string;
  /** CPU core to run on. */
  core: string;
  /** Address, for example `127.0.0.1:4000`. */
  upstream: string;
}

const START_TIMEOUT_MS = 5000;

/** Starts nginx as a plain proxy with an access log, without authentication. Undefined if it is not installed. */
export async function startNginx({ folder, core, upstream }: FrontEndOptions): Promise<FrontEnd | undefined> {
  if (!isInstalled('nginx', '-v', 'nginx-light')) return undefined;
  const port = await freePort();
  const config = join(folder, 'nginx.conf');
  // Without a master process, the spawned process is the one that serves and is killed.
  await writeFile(
    config,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx-error.log;
     events { worker_connections 1024; }
     http {
       access_log ${folder}/nginx-access.log combined buffer=64k flush=1s;
       client_body_temp_path ${folder}/nginx-body;
       proxy_temp_path ${folder}/nginx-proxy;
       upstream service { server ${upstream}; keepalive 128; }
       server {
         listen 127.0.0.1:${port} backlog=4096;
         keepalive_requests 100000000;
         location / { proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; }
       }
     }`,
  );
  return started(core, port, 'nginx', '-c', config, '-p', folder, '-e', join(folder, 'nginx-error.log'));
}

/** Starts HAProxy with HS256 and expiry checks, tenant header and log. Undefined if it is not installed. */
export async function startHaproxy(
  options: FrontEndOptions & { secret: string },
): Promise<FrontEnd | undefined> {
  const { folder, core, upstream, secret } = options;
  if (!isInstalled('haproxy', '-v', 'haproxy')) return undefined;
  const port = await freePort();
  const config = join(folder, 'haproxy.cfg');
  await writeFile(
    config,
    `global
  nbthread 1
  maxconn 2000
  log stdout format raw local0
defaults
  mode http
  log global
  option httplog
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend gateway
  bind 127.0.0.1:${port} backlog 4096
  http-request set-var(txn.token) http_auth_bearer
  http-request set-var(txn.alg) http_auth_bearer,jwt_header_query('$.alg')
  http-request set-var(txn.exp) http_auth_bearer,jwt_payload_query('$.exp','int')
  http-request set-var(txn.now) date()
  http-request deny deny_status 401 unless { var(txn.alg) -m str HS256 }
  http-request deny deny_status 401 unless { var(txn.token),jwt_verify(txn.alg,"${secret}") -m int 1 }
  http-request deny deny_status 401 if { var(txn.exp),sub(txn.now) -m int lt 0 }
  http-request set-header X-Tenant-ID %[http_auth_bearer,jwt_payload_query('$.namespaceId')]
  http-request del-header Authorization
  default_backend service
backend service
  http-reuse always
  server one ${upstream}
`,
  );
  return started(core, port, 'haproxy', '-db', '-f', config);
}

export function isInstalled(program: string, versionFlag: string, debianPackage: string): boolean {
  try {
    execFileSync(program, [versionFlag], { stdio: 'ignore' });
    return true;
  } catch {
    console.error(`${program} is not installed and is skipped. On Debian: apt-get install ${debianPackage}`);
    return false;
  }
}

export async function started(core: string, port: number, ...command: string[]): Promise<FrontEnd> {
  const child = spawn('taskset', ['-c', core, ...command], { stdio: ['ignore', 'ignore', 'inherit'] });
  for (let waitedMs = 0; waitedMs < START_TIMEOUT_MS; waitedMs += 50) {
    if (child.exitCode !== null) throw new Error(`${command[0]} exited with ${child.exitCode}`);
    if (await answers(port)) return { child, port };
    await sleep(50);
  }
  child.kill('SIGKILL');
  throw new Error(`${command[0]} did not listen on ${port} in time`);
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

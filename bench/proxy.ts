import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createSecretKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { packageRoot } from '../src/kit/paths.ts';
import { generateLoad, type LoadReport } from './support/load.ts';
import { pacedLoad } from './support/paced-load.ts';
import { type BenchResult, median, round } from './support/result.ts';

const CONNECTIONS = 100;
const TOKENS = 100;
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 2000);
const PACED_PER_SECOND = 1000;
const SECRET = 'a-benchmark-secret-of-more-than-32-bytes';
const STATIC_TOKEN = 'a-static-token-of-the-benchmark';
/** The proxy alone on one core; upstream and load on the other. */
const SERVER_CORE = '0';
const LOAD_CORE = '1';
const POST_BODY = JSON.stringify({ text: 'x'.repeat(1010) });

interface Measured extends LoadReport {
  /** CPU time of the server for each request: what a busy machine does not distort. */
  cpuUs: number;
}

interface Contender {
  name: string;
  port: number;
  pid: number;
  tokens: readonly string[];
}

/** Authenticated proxying, 1 KB, of our gateway and of others, side by side. */
export async function run(): Promise<BenchResult> {
  const children: ChildProcess[] = [];
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  execFileSync('taskset', ['-a', '-p', '-c', LOAD_CORE, String(process.pid)]);
  try {
    const upstream = await start(children, LOAD_CORE, 'upstream.ts');
    const contenders = await startAll(children, `http://127.0.0.1:${upstream.port}`, folder);
    const gets = await measure(contenders, 'GET');
    const posts = await measure(contenders, 'POST');
    const direct = { name: 'upstream, directly', ...upstream, tokens: ['none'] };
    const base = median(gets.get('bare node:http + undici, no auth')!.map(({ perSecond }) => perSecond));
    const rows: BenchResult['rows'] = [];
    for (const contender of [direct, ...contenders]) {
      const { name } = contender;
      const get = gets.get(name);
      const post = posts.get(name);
      const paced = await pacedLoad({
        port: contender.port,
        connections: CONNECTIONS,
        perSecond: PACED_PER_SECOND,
        durationMs: 2 * ROUND_MS,
        request: requestOf('GET', contender.tokens),
      });
      rows.push({
        server: name,
        'GET/s': get ? rate(get) : '',
        'x bare': get ? round(rate(get) / base, 2) : '',
        'CPU us': get ? middle(get, ({ cpuUs }) => cpuUs) : '',
        'p50 ms': get ? middle(get, ({ p50Ms }) => p50Ms) : '',
        'p99 ms': get ? middle(get, ({ p99Ms }) => p99Ms) : '',
        'POST/s': post ? rate(post) : '',
        'at 1,000/s: p50 ms': round(paced.p50Ms, 2),
        'p99 ms ': round(paced.p99Ms, 2),
        'RSS MB': rssMb(contender.pid),
      });
    }
    return {
      name: `Authenticated proxy, 1 KB, ${CONNECTIONS} connections, ${TOKENS} tokens`,
      rows,
      note: `Medians of ${ROUNDS} interleaved rounds of ${ROUND_MS / 1000} s. The server alone on one core, upstream and load on the other. svc has all features and an access line on; the fastify stack verifies HS256 on each request.`,
    };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    execFileSync('taskset', ['-a', '-p', '-c', '0-1', String(process.pid)]);
    await rm(folder, { recursive: true, force: true });
  }
}

async function startAll(children: ChildProcess[], upstream: string, folder: string): Promise<Contender[]> {
  const jwts = await Promise.all(Array.from({ length: TOKENS }, (_, index) => sign(index)));
  const onServer = (file: string, ...args: string[]) => start(children, SERVER_CORE, file, ...args);
  const svc = await onServer('svc-gateway.ts', upstream, SECRET, STATIC_TOKEN);
  const contenders: Contender[] = [
    { name: 'svc gateway, JWT', ...svc, tokens: jwts },
    { name: 'svc gateway, static token', ...svc, tokens: [STATIC_TOKEN] },
    {
      name: 'bare node:http + undici, no auth',
      ...(await onServer('bare-undici.ts', upstream)),
      tokens: jwts,
    },
    {
      name: 'fastify + http-proxy + jwt, no log',
      ...(await onServer('fastify-stack.ts', upstream, SECRET)),
      tokens: jwts,
    },
    {
      name: 'fastify + http-proxy + jwt, its log on',
      ...(await onServer('fastify-stack.ts', upstream, SECRET, 'log')),
      tokens: jwts,
    },
  ];
  const nginx = await startNginx(children, upstream, folder);
  if (nginx) contenders.push({ name: 'nginx, no auth', ...nginx, tokens: jwts });
  return contenders;
}

/** A program of `support/proxies` on a core of its own; it prints its port. */
async function start(children: ChildProcess[], core: string, file: string, ...args: string[]) {
  const program = join(packageRoot, 'bench/support/proxies', file);
  const child = spawn('taskset', ['-c', core, process.execPath, program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout!.once('data', (text) => resolve(Number(text)));
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)));
  });
  return { port, pid: child.pid! };
}

async function startNginx(children: ChildProcess[], upstream: string, folder: string) {
  try {
    execFileSync('nginx', ['-v'], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  const port = 18_080;
  const config = join(folder, 'nginx.conf');
  await writeFile(
    config,
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log /dev/null;
     events { worker_connections 1024; }
     http { access_log ${folder}/access.log; upstream u { server ${upstream.slice(7)}; keepalive 128; }
       server { listen 127.0.0.1:${port}; location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection ""; } } }`,
  );
  const child = spawn('taskset', ['-c', SERVER_CORE, 'nginx', '-c', config, '-p', folder], {
    stdio: 'ignore',
  });
  children.push(child);
  await new Promise((resolve) => setTimeout(resolve, 500));
  return { port, pid: child.pid! };
}

async function sign(index: number): Promise<string> {
  return new SignJWT({ hostId: `host-${index}`, namespaceId: 'bench', typ: 'access' })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(`host-${index}`)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(createSecretKey(Buffer.from(SECRET)));
}

function requestOf(method: 'GET' | 'POST', tokens: readonly string[]): () => string {
  const body = method === 'POST' ? POST_BODY : '';
  const length =
    method === 'POST' ? `content-type: application/json\r\ncontent-length: ${body.length}\r\n` : '';
  const requests = tokens.map(
    (token) =>
      `${method} /api/v1/plugins/bench/items?page=1 HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\naccept: application/json\r\nuser-agent: bench\r\n${length}\r\n${body}`,
  );
  let next = 0;
  return () => requests[next++ % requests.length]!;
}

async function measure(contenders: Contender[], method: 'GET' | 'POST'): Promise<Map<string, Measured[]>> {
  const reports = new Map<string, Measured[]>(contenders.map(({ name }) => [name, []]));
  for (let turn = -1; turn < ROUNDS; turn++) {
    for (const { name, port, pid, tokens } of contenders) {
      const durationMs = turn < 0 ? ROUND_MS / 2 : ROUND_MS;
      const request = requestOf(method, tokens);
      const cpuBefore = cpuMs(pid);
      const report = await generateLoad({ port, connections: CONNECTIONS, durationMs, request });
      const wrong = Object.keys(report.statuses).filter((status) => status !== '200');
      if (wrong.length > 0) throw new Error(`${name} answered ${JSON.stringify(report.statuses)}`);
      // The first turn warms up.
      if (turn >= 0)
        reports.get(name)!.push({ ...report, cpuUs: ((cpuMs(pid) - cpuBefore) * 1000) / report.answered });
    }
  }
  return reports;
}

const rate = (reports: Measured[]): number => round(median(reports.map(({ perSecond }) => perSecond)));
const middle = (reports: Measured[], of: (report: Measured) => number): number =>
  round(median(reports.map(of)), 2);

/** CPU time of the process so far, in ms; the kernel counts in hundredths of a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function rssMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return round(Number(kb) / 1024);
}

if (import.meta.main) console.log(JSON.stringify(await run(), null, 2));

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { packageRoot } from '../src/kit/files/paths.ts';
import { generateLoad, type LoadReport } from './support/load.ts';
import { type PacedReport, pacedLoad } from './support/paced-load.ts';
import { cpuUsOf, rssMbOf } from './support/process-usage.ts';
import { startHaproxy, startNginx } from './support/proxies/front-ends.ts';
import { type BenchResult, median, round } from './support/result.ts';

const CONNECTIONS = 100;
const TOKENS = 100;
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const ROUND_MS = Number(process.env.BENCH_ROUND_MS ?? 2000);
/** With two processes, each gets half of the calls and must be compiled before the measurement. */
const WARM_UP_ROUNDS = 2;
const PACED_PER_SECOND = 1000;
const SECRET = 'a-benchmark-secret-of-more-than-32-bytes';
const STATIC_TOKEN = 'a-static-token-of-the-benchmark';
/** The proxy has one core to itself; upstream and load use the other. */
const SERVER_CORE = '0';
const LOAD_CORE = '1';
const BARE = 'bare node:http + undici, no auth';
const POST_BODY = JSON.stringify({ text: 'x'.repeat(1010) });

interface Measured extends LoadReport {
  /** CPU time of the server per request, which is robust against other load on the machine. */
  cpuUs: number;
}

interface Contender {
  name: string;
  port: number;
  pid: number;
  tokens: readonly string[];
}

/** Compares authenticated proxying of 1 KB between our gateway and others. */
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
    const paced = await pace([direct, ...contenders]);
    const rows = [direct, ...contenders].map(({ name, pid }) => {
      const get = gets.get(name);
      const post = posts.get(name);
      const steady = paced.get(name)!;
      return {
        server: name,
        'GET/s': get ? rate(get) : '',
        'GET, CPU us': get ? middle(get, ({ cpuUs }) => cpuUs, 1) : '',
        'CPU x bare': get ? round(cpuRatio(get, gets.get(BARE)!), 2) : '',
        'p50 ms': get ? middle(get, ({ p50Ms }) => p50Ms) : '',
        'p99 ms': get ? middle(get, ({ p99Ms }) => p99Ms) : '',
        'POST/s': post ? rate(post) : '',
        'POST, CPU us': post ? middle(post, ({ cpuUs }) => cpuUs, 1) : '',
        'at 1,000/s: p50 ms': middle(steady, ({ p50Ms }) => p50Ms),
        'p99 ms ': middle(steady, ({ p99Ms }) => p99Ms),
        'RSS MB': round(rssMbOf(pid)),
      };
    });
    return {
      name: `Authenticated proxy, 1 KB, ${CONNECTIONS} connections, ${TOKENS} tokens`,
      rows,
      note: `Medians of ${ROUNDS} interleaved rounds of ${ROUND_MS / 1000} s. The server has one core to itself (two processes share it), upstream and load use the other. "CPU x bare" is the median over rounds of the ratio to the CPU time per request of the bare pass-through in the same round, which other load on the machine distorts least. svc has all features and access logging on; the fastify stack and HAProxy verify HS256 on each request.`,
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
  const ours = (processes: string) =>
    onServer('svc-gateway.ts', upstream, SECRET, STATIC_TOKEN, join(folder, `svc-${processes}`), processes);
  const svc = await ours('1');
  const contenders: Contender[] = [
    { name: 'svc gateway, JWT', ...svc, tokens: jwts },
    { name: 'svc gateway, static token', ...svc, tokens: [STATIC_TOKEN] },
    {
      name: 'svc gateway, JWT, 2 processes',
      ...(await ours('2')),
      tokens: jwts,
    },
    {
      name: BARE,
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
  const frontEnd = { folder, core: SERVER_CORE, upstream: upstream.slice('http://'.length) };
  for (const [name, front] of [
    ['nginx, no auth, log on', await startNginx(frontEnd)],
    ['HAProxy, HS256, log on', await startHaproxy({ ...frontEnd, secret: SECRET })],
  ] as const) {
    if (!front) continue;
    children.push(front.child);
    contenders.push({ name, port: front.port, pid: front.child.pid!, tokens: jwts });
  }
  return contenders;
}

/** Starts a program of `support/proxies` on a given core; it prints its port. */
async function start(children: ChildProcess[], core: string, file: string, ...args: string[]) {
  const program = join(packageRoot, 'bench/support/proxies', file);
  const child = spawn('taskset', ['-c', core, process.execPath, program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout!.once('data', (text) => resolve(Number(text)));
    child.once('exit', (code) => reject(new Error(`${file} exited with ${code}`)));
  });
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
  for (let turn = -WARM_UP_ROUNDS; turn < ROUNDS; turn++) {
    for (const { name, port, pid, tokens } of contenders) {
      const request = requestOf(method, tokens);
      const cpuBefore = cpuUsOf(pid);
      const report = await generateLoad({ port, connections: CONNECTIONS, durationMs: ROUND_MS, request });
      const wrong = Object.keys(report.statuses).filter((status) => status !== '200');
      if (wrong.length > 0) throw new Error(`${name} answered ${JSON.stringify(report.statuses)}`);
      if (turn >= 0)
        reports.get(name)!.push({ ...report, cpuUs: (cpuUsOf(pid) - cpuBefore) / report.answered });
    }
  }
  return reports;
}

/** Interleaved rounds at a fixed rate: latency without saturation. */
async function pace(contenders: Contender[]): Promise<Map<string, PacedReport[]>> {
  const reports = new Map<string, PacedReport[]>(contenders.map(({ name }) => [name, []]));
  for (let turn = 0; turn < ROUNDS; turn++) {
    for (const { name, port, tokens } of contenders) {
      const request = requestOf('GET', tokens);
      const pacing = { connections: CONNECTIONS, perSecond: PACED_PER_SECOND, durationMs: ROUND_MS };
      reports.get(name)!.push(await pacedLoad({ port, request, ...pacing }));
    }
  }
  return reports;
}

/** Median over rounds of the ratio of CPU time per request in the same round. */
function cpuRatio(reports: Measured[], others: Measured[]): number {
  return median(reports.map(({ cpuUs }, turn) => cpuUs / others[turn]!.cpuUs));
}

const rate = (reports: Measured[]): number => round(median(reports.map(({ perSecond }) => perSecond)));
function middle<Report>(reports: Report[], of: (report: Report) => number, digits = 2): number {
  return round(median(reports.map(of)), digits);
}

if (import.meta.main) console.log(JSON.stringify(await run(), null, 2));

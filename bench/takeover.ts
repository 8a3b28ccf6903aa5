import { setTimeout as sleep } from 'node:timers/promises';
import { CleanUps } from './support/cluster/clean-ups.ts';
import { PostgresServer, postgresPrograms } from './support/cluster/postgres-server.ts';
import { type Kill, TakeoverNodes } from './support/cluster/takeover.ts';
import { type BenchResult, quantile, round } from './support/result.ts';

const KILLS = Number(process.env.SVC_BENCH_KILLS ?? 10);
/** After this time, the nodes have renewed their leases for long enough, and the supervisor has reset its delay. */
const PAUSE_MS = 16_000;
const NAME = 'Takeover: runs of killed processes and nodes';

/** Time from a kill during a step until the step is called again, with two nodes that share one PostgreSQL. */
export async function benchmark(): Promise<BenchResult> {
  if (!postgresPrograms())
    return {
      name: NAME,
      rows: [{ what: 'skipped', measured: 'PostgreSQL is not installed: apt install postgresql' }],
    };
  const cleanUps = new CleanUps();
  try {
    const postgres = await PostgresServer.start();
    cleanUps.add(() => postgres.remove());
    const nodes = await TakeoverNodes.start(postgres.url());
    cleanUps.add(() => nodes.stop());
    const rows = [
      await measure(nodes, 'process', 'SIGKILL of a workflow service, which its supervisor restarts', '<= 2'),
      await measure(nodes, 'machine', 'SIGKILL of all processes of a node', '<= 15'),
    ];
    return {
      name: NAME,
      rows,
      note: `Seconds from the kill to the next call of the step. ${KILLS} kills each.`,
    };
  } finally {
    await cleanUps.run();
  }
}

async function measure(
  nodes: TakeoverNodes,
  kill: Kill,
  what: string,
  aim: string,
): Promise<BenchResult['rows'][number]> {
  const times: number[] = [];
  for (let number = 0; number < KILLS; number++) {
    await sleep(PAUSE_MS);
    times.push(await nodes.takeOver(kill, number));
  }
  const [least, middle, most] = [0, 0.5, 1].map((share) => round(quantile(times, share), 2));
  const all = times.toSorted((a, b) => a - b).map((time) => time.toFixed(2));
  return { what, aim, 'least s': least!, 'median s': middle!, 'most s': most!, all: all.join(' ') };
}

export { benchmark as run };

if (import.meta.main) {
  console.log(JSON.stringify(await benchmark(), null, 2));
  process.exit(0);
}

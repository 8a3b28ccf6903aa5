import { test } from 'vitest';
import { platformChaos, serviceChaos } from './scenarios.ts';

const RUNS = Number(process.env.SVC_TEST_CHAOS_RUNS ?? 1000);
const DEATHS = Number(process.env.SVC_TEST_CHAOS_KILLS ?? 100);
/** Of each death of a service; a platform takes longer to come back. */
const PLATFORM_SHARE = 0.2;

test(`${RUNS} runs and ${DEATHS} crashes: no run is lost, stuck, duplicated or wrongly dead-lettered`, async () => {
  await serviceChaos({ runs: RUNS, deaths: DEATHS });
}, 3_600_000);

test('the same holds on a whole platform with starts through its gateway', async () => {
  const [runs, deaths] = [RUNS, DEATHS].map((count) => Math.round(count * PLATFORM_SHARE)) as [
    number,
    number,
  ];
  await platformChaos({ runs, deaths });
}, 3_600_000);

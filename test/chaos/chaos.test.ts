import { test } from 'vitest';
import { platformChaos, serviceChaos } from './scenarios.ts';

/** The long ones, with a thousand runs and a hundred deaths: `npm run test:chaos`. */
test('under random deaths, signals and cancels no run is lost, stuck, doubled or wrongly given up', async () => {
  await serviceChaos({ runs: 36, deaths: 6 });
}, 420_000);

test('through a gateway that dies beside the workflow service every acknowledged start ends once', async () => {
  await platformChaos({ runs: 9, deaths: 3 });
}, 420_000);

import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { INSTANCE_FILE, instanceId } from '../../../src/kit/files/instance-id.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { tempDir } from '../../support/daemon.ts';

const random = systemRandom();

test('a data folder keeps its instance id, and another has another', async () => {
  const [folder, other] = [await tempDir(), await tempDir()];
  const id = instanceId(folder, {}, random);
  expect(id).toMatch(/^node_/);
  expect(instanceId(folder, {}, random)).toBe(id);
  expect(instanceId(other, {}, random)).not.toBe(id);
  expect(readdirSync(folder)).toEqual([INSTANCE_FILE]);
});

test('SVC_INSTANCE takes precedence and leaves the folder alone', async () => {
  const folder = await tempDir();
  expect(instanceId(folder, { SVC_INSTANCE: 'pod-1' }, random)).toBe('pod-1');
  expect(readdirSync(folder)).toEqual([]);
});

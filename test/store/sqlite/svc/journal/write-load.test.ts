import { expect, test } from 'vitest';
import { WriteLoad } from '../../../../../src/store/sqlite/svc/journal/write-load.ts';

function begin(load: WriteLoad, units: number): void {
  for (let n = 0; n < units; n++) load.begin();
}

test('a burst lasts while a large frame is written, and ends after an interval without writes', () => {
  const load = new WriteLoad();
  begin(load, 400);
  expect([load.isBurst(), load.isBurst()]).toEqual([true, true]);
  load.end(400);
  expect([load.isBurst(), load.isBurst()]).toEqual([true, false]);
});

test('a few writes per interval are not a burst', () => {
  const load = new WriteLoad();
  begin(load, 39);
  load.end(20);
  expect(load.isBurst()).toBe(false);
});

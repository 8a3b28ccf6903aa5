import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { lastRecords } from '../../src/cli/log-reader.ts';
import { lineBlocks } from '../../src/kit/streams/line-blocks.ts';
import { openLogFile } from '../../src/supervisor/log-file.ts';
import { createLogTail } from '../../src/supervisor/log-tail.ts';
import { tempDir } from '../support/daemon.ts';

const record = (time: number, message = `m${time}`) => JSON.stringify({ level: 'info', time, message });

test('a full log file is rotated, and the oldest of three files is deleted', async () => {
  const file = join(await tempDir(), 'x.log');
  const log = openLogFile(file, { maxBytes: 10, files: 3 });
  for (const line of ['first-line\n', 'second-line\n', 'third-line\n', 'fourth-line\n', 'last\n'])
    log.write(line);
  log.close();
  const contents = await Promise.all(['', '.1', '.2'].map((end) => readFile(file + end, 'utf8')));
  expect(contents).toEqual(['last\n', 'fourth-line\n', 'third-line\n']);
  await expect(readFile(`${file}.3`)).rejects.toThrow('ENOENT');
});

test('lines that cannot be written are lost with one warning, and logging resumes when writes succeed', async () => {
  const folder = await tempDir();
  const file = join(folder, 'absent', 'x.log');
  const complaint = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const log = openLogFile(file);
  log.write('lost\n');
  log.write('lost too\n');
  expect(complaint.mock.calls.flat().filter((text) => String(text).includes(file))).toHaveLength(1);
  complaint.mockRestore();
  await mkdir(join(folder, 'absent'));
  log.write('kept\n');
  log.close();
  expect(await readFile(file, 'utf8')).toBe('kept\n');
});

test('a byte stream is split only at line ends, wherever its chunks end', () => {
  const blocks: string[] = [];
  const lines = lineBlocks((block) => blocks.push(block.toString()));
  for (const chunk of ['{"a":', '1}\n{"b"', ':"ü', '"}\n', 'rest']) lines.push(Buffer.from(chunk));
  lines.end();
  expect(blocks).toEqual(['{"a":1}\n', '{"b":"ü"}\n', 'rest\n']);
});

test('the log tail keeps the latest lines and finds the last fatal record, or else the last error', () => {
  const tail = createLogTail();
  const line = (level: string, message: string) => Buffer.from(`${JSON.stringify({ level, message })}\n`);
  for (let i = 0; i < 50; i++) tail.push(line('info', `line ${i}`));
  expect(tail.lines()).toHaveLength(20);
  expect(tail.lastErrorMessage()).toBeUndefined();
  tail.push(line('fatal', 'the cause'));
  tail.push(line('error', 'a consequence'));
  expect(tail.lastErrorMessage()).toBe('the cause');
  tail.clear();
  expect(tail.lines()).toEqual([]);
});

test('the last records of several log files are ordered by time, across a rotation', async () => {
  const folder = await tempDir();
  const [a, b] = [join(folder, 'a.log'), join(folder, 'b.log')];
  await writeFile(a, `${record(1)}\n${record(4)}\n`);
  await rename(a, `${a}.1`);
  await writeFile(a, `${record(6)}\n`);
  await appendFile(b, `${record(2)}\n${record(5)}\n`);
  const last = (count: number) =>
    lastRecords([a, b, join(folder, 'absent.log')], count).records.map((line) => JSON.parse(line).time);
  expect(last(4)).toEqual([2, 4, 5, 6]);
  expect(last(100)).toEqual([1, 2, 4, 5, 6]);
  expect(last(0)).toEqual([]);
});

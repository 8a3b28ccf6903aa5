import { expect, onTestFinished, test, vi } from 'vitest';
import { LeaderNotice } from '../../../src/daemons/gateway/domain/webhooks/dispatch/leader-notice.ts';

function notices() {
  const answers: Array<() => void> = [];
  const notify = vi.fn((_url: string) => new Promise<void>((resolve) => answers.push(resolve)));
  const notice = new LeaderNotice({ notify });
  onTestFinished(() => notice.close());
  return { notice, notify, answers };
}

test('many deliveries share a notice, and those accepted during a notice cause exactly one more', async () => {
  const { notice, notify, answers } = notices();
  notice.setUrl('http://leader');
  for (let n = 0; n < 100; n++) notice.send();
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  for (let n = 0; n < 100; n++) notice.send();
  expect(notify.mock.calls).toEqual([['http://leader']]);
  answers[0]!();
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  answers[1]!();
  notice.send();
  await vi.waitFor(() => expect(answers).toHaveLength(3));
});

test('a failed notice does not prevent the next one', async () => {
  const { notice, notify } = notices();
  notify.mockRejectedValueOnce(new Error('gone'));
  notice.setUrl('http://leader');
  notice.send();
  await vi.waitFor(() => expect(notify).toHaveBeenCalledTimes(1));
  notice.send();
  await vi.waitFor(() => expect(notify).toHaveBeenCalledTimes(2));
});

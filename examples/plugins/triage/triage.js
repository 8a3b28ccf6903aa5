import { defineWorkflow, z } from 'svc-platform/sdk';

const THREE_DAYS_MS = 3 * 24 * 3600_000;

/** What an issue is about, by its title. */
function kindOf(title) {
  if (/crash|error|fail|broken/i.test(title)) return 'bug';
  return /\?\s*$/.test(title) ? 'question' : 'idea';
}

/**
 * One run an issue, from the delivery that opened it to the answer. It runs from its first line each time it is taken up
 * again: whatever has an effect is a step, and a step that has ended is not run again.
 */
export const triage = defineWorkflow({
  id: 'triage',
  input: z.object({ repository: z.string(), number: z.number(), title: z.string() }),
  // A second write of the same entry does no harm: a step that a crash caught in mid-air is run again.
  steps: { idempotent: true },
  async run(ctx, issue) {
    const kind = await ctx.step('classify', () => kindOf(issue.title));
    const key = `issue:${issue.repository}#${issue.number}`;
    const keep = (status, reminders) => ctx.state.set(key, { ...issue, kind, status, reminders });
    await ctx.step('keep', () => keep('open', 0));
    for (let reminders = 1; reminders <= 3; reminders++) {
      try {
        // The run holds no process meanwhile: `svc workflows signal <run> answered --input '"ann"'` wakes it.
        const { payload: by } = await ctx.waitForSignal('answered', { timeoutMs: THREE_DAYS_MS });
        await ctx.step('close', () => keep('answered', reminders - 1));
        return { kind, answeredBy: by, reminders: reminders - 1 };
      } catch (error) {
        if (error.status !== 'timed_out') throw error;
      }
      await ctx.step('remind', async () => {
        ctx.log.warn(`${key} (${kind}) waits for an answer`, { reminders });
        await keep('reminded', reminders);
      });
    }
    return { kind, answeredBy: null, reminders: 3 };
  },
});

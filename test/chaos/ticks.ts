import { listSchedules, pauseSchedule, resumeSchedule, type Schedule } from '../../src/contracts/index.ts';
import type { RetryingClient } from '../daemons/workflow/support/retrying-client.ts';
import { TICK_MS } from './kinds/definitions.ts';

const WORKFLOW = 'tick';

/** A schedule that is in force for some time: each of its times is served once, also those that nothing ran at. */
export class Ticks {
  readonly #client: RetryingClient;
  readonly #schedule: Schedule;
  readonly #firstAt: number;
  readonly #before: number;

  private constructor(client: RetryingClient, schedule: Schedule, before: number) {
    this.#client = client;
    this.#schedule = schedule;
    this.#firstAt = schedule.nextAt!;
    this.#before = before;
  }

  static async resume(client: RetryingClient): Promise<Ticks> {
    const { id: scheduleId } = await scheduleOf(client);
    await client.call(pauseSchedule, { params: { scheduleId } });
    await client.allEnded();
    const before = await countTicks(client);
    const { schedule } = await client.call(resumeSchedule, { params: { scheduleId } });
    return new Ticks(client, schedule, before);
  }

  async pause(): Promise<void> {
    await this.#client.call(pauseSchedule, { params: { scheduleId: this.#schedule.id } });
  }

  /** Once it is paused and all runs have ended. */
  async faults(): Promise<string[]> {
    const { lastAt } = await scheduleOf(this.#client);
    const planned = lastAt === null ? 0 : Math.max(0, (lastAt - this.#firstAt) / TICK_MS + 1);
    const served = (await countTicks(this.#client)) - this.#before;
    return planned === served ? [] : [`the schedule came ${planned} times, and started ${served} runs`];
  }
}

async function scheduleOf(client: RetryingClient): Promise<Schedule> {
  const { items } = await client.call(listSchedules, {});
  return items.find(({ workflowId }) => workflowId === WORKFLOW)!;
}

const countTicks = async (client: RetryingClient): Promise<number> =>
  (await client.runs({ workflowId: WORKFLOW })).length;

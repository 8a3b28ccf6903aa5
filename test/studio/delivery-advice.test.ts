import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, BROWSER_MISSING, type Studio, startStudio } from './support/studio.ts';

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'advice for deliveries', () => {
  let studio: Studio;

  beforeAll(async () => {
    studio = await startStudio();
    await studio.svc('webhooks', 'provision', '@acme/orders', 'created');
  });
  afterAll(() => studio?.close());

  test('a delivery of a paused webhook says so, and its button resumes the webhook', async () => {
    const { svc } = studio;
    await svc('webhooks', 'provision', '@acme/orders', 'later');
    await svc('webhooks', 'pause', '@acme/orders', 'later');
    const held = await svc('webhooks', 'send', '@acme/orders', 'later', '--data', '{}');
    const { page, problems, context } = await studio.open('/studio/deliveries');
    await page.getByText('waits: the webhook is paused').waitFor();
    await page.goto(`${studio.url}/studio/deliveries/${held.webhookId}`);
    await page.getByText('It waits because the webhook is paused.').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Resume the webhook' }).click();
    await page.locator('.verdict', { hasText: 'succeeded' }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });

  test('a failed delivery is replayed from its advice', async () => {
    const sent = await studio.platform.svc(
      ...['webhooks', 'send', '@acme/orders', 'created', '--data', '{"do":"fail"}'],
    );
    const failed = sent.envelope.result.webhookId;
    const { page, problems, context } = await studio.open(`/studio/deliveries/${failed}`);
    await page.getByText('The handler failed. Read its log, correct the cause, then replay.').waitFor();
    await page.getByRole('button', { name: 'Replay the delivery' }).click();
    await page.getByText('Replay of').waitFor();
    expect(page.url()).not.toContain(failed);
    expect(problems).toEqual([]);
    await context.close();
  });
});

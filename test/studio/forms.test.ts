import { describe, expect, onTestFinished, test } from 'vitest';
import { dataOf, fieldsOf, firstValue } from '../../src/studio/ui/form-values.ts';
import { atEnd, sharedByTests } from '../support/at-end.ts';
import { axeViolations, BROWSER_MISSING, startStudio, withFiles } from './support/studio.ts';

const FORM = {
  type: 'object',
  properties: {
    region: { title: 'Region', description: 'Where the order is shipped from', enum: ['eu', 'us'] },
    amount: { title: 'Amount', type: 'integer', minimum: 1 },
    weight: { title: 'Weight', type: 'number', default: 1.5 },
    express: { title: 'Express', type: 'boolean' },
    day: { title: 'Day', type: 'string', format: 'date' },
    name: { title: 'Name', type: 'string', maxLength: 40 },
    note: { title: 'Note', type: 'string', maxLength: 2000 },
    labels: { title: 'Labels', type: 'array', items: { enum: ['fragile', 'cold'] } },
    extra: { title: 'Extra', type: 'object' },
  },
  required: ['region', 'amount'],
  additionalProperties: false,
};

const WORKFLOWS = {
  'workflows/form.yaml': {
    id: 'form',
    jobs: {
      main: {
        steps: [
          {
            id: 'ask',
            uses: 'approval',
            with: { message: 'Ship it?', form: FORM, approvers: { roles: ['admin'] }, timeoutMs: 3600_000 },
          },
        ],
      },
    },
  },
  'workflows/pay.yaml': {
    id: 'pay',
    signals: { paid: { type: 'object', properties: { amount: { title: 'Paid amount', type: 'number' } } } },
    jobs: { main: { steps: [{ id: 'wait', uses: 'signal', with: { name: 'paid' } }] } },
  },
  'workflows/ship.yaml': {
    id: 'ship',
    jobs: {
      main: {
        steps: [
          {
            id: 'wait',
            uses: 'signal',
            with: {
              ...{ name: 'shipped', form: FORM, approvers: { roles: ['admin'] }, timeoutMs: 3600_000 },
            },
          },
        ],
      },
    },
  },
};

describe.skipIf(BROWSER_MISSING)(BROWSER_MISSING ?? 'forms of the inbox', () => {
  const shared = sharedByTests(async () => {
    const files = Object.entries(WORKFLOWS).map(([name, content]) => [name, JSON.stringify(content)]);
    const studio = await startStudio({}, withFiles(Object.fromEntries(files)));
    atEnd(() => studio.close());
    return studio;
  });

  async function openCard(workflow: string, options: { theme?: 'light' | 'dark'; width?: number } = {}) {
    const run = await shared().svc('workflows', 'run', workflow);
    await expect
      .poll(async () => (await shared().svc('workflows', 'show', run.id)).run.status)
      .toBe('waiting');
    const opened = await shared().open('/studio/inbox', options);
    onTestFinished(() => opened.context.close());
    const card = opened.page.locator('.card', {
      has: opened.page.locator(`a[href="/studio/runs/${run.id}"]`),
    });
    await card.getByText(/Ship it|waits for/).waitFor();
    return { ...opened, run, card };
  }

  test('a person fills in a form by keyboard alone, at 390 px', async () => {
    const { page, card, run, problems } = await openCard('form', { width: 390 });
    expect(await card.textContent()).toMatch(/Expires .*Needs the role admin\./);
    const keyboard = page.keyboard;
    await card.getByLabel('Region').focus();
    await keyboard.press('ArrowDown');
    await keyboard.press('ArrowDown');
    for (const text of ['3', '2.5']) {
      await keyboard.press('Tab');
      await keyboard.press('ControlOrMeta+a');
      await keyboard.type(text);
    }
    await keyboard.press('Tab');
    await keyboard.press('Space');
    await card.getByLabel('Day').fill('2030-01-31');
    await card.getByLabel('Name').focus();
    await keyboard.type('Ada');
    await keyboard.press('Tab');
    await keyboard.type('Two\nlines');
    await keyboard.press('Tab');
    await keyboard.press('Space');
    await keyboard.press('Tab');
    await keyboard.press('Tab');
    await keyboard.type('{"gate": 7}');
    await keyboard.press('Tab');
    await keyboard.type('fine');
    await keyboard.press('Enter');
    const shown = () => shared().svc('workflows', 'show', run.id);
    await expect.poll(async () => (await shown()).run.status).toBe('succeeded');
    expect((await shown()).steps[0].output).toEqual({
      ...{ approved: true, by: 'operator', comment: 'fine' },
      data: {
        ...{ region: 'us', amount: 3, weight: 2.5, express: true, day: '2030-01-31', name: 'Ada' },
        ...{ note: 'Two\nlines', labels: ['fragile'], extra: { gate: 7 } },
      },
    });
    expect(problems).toEqual([]);
  });

  test('a field names its mistake, found here or by the gateway', async () => {
    const { card } = await openCard('form');
    await card.getByLabel('Region').selectOption('eu');
    await card.getByLabel('Amount').fill('1');
    await card.getByLabel('Extra').fill('{broken');
    await card.getByRole('button', { name: 'Approve' }).click();
    await expect.poll(() => card.getByRole('alert').first().textContent()).toContain('must be JSON');
    await card.getByLabel('Extra').fill('[1]');
    await card.getByRole('button', { name: 'Approve' }).click();
    await expect.poll(() => card.getByLabel('Extra').getAttribute('aria-invalid')).toBe('true');
    await expect.poll(() => card.locator('.field').getByRole('alert').textContent()).toContain('object');
    await card.getByRole('button', { name: 'Refuse' }).click();
    await expect.poll(() => card.count()).toBe(0);
  });

  test('a signal with a schema is sent with a form', async () => {
    const { card, run, problems } = await openCard('pay');
    await card.getByLabel('Paid amount').fill('12.5');
    await card.getByRole('button', { name: 'Send' }).click();
    const shown = () => shared().svc('workflows', 'show', run.id);
    await expect.poll(async () => (await shown()).run.status).toBe('succeeded');
    expect((await shown()).steps[0].output.payload).toEqual({ amount: 12.5 });
    expect(problems).toEqual([]);
  });

  test('a signal step with a form shows its expiry and senders, and names mistakes by field', async () => {
    const { card, run } = await openCard('ship');
    expect(await card.textContent()).toMatch(/Expires .*Needs the role admin\./);
    await card.getByLabel('Region').selectOption('us');
    await card.getByLabel('Amount').fill('4');
    await card.getByLabel('Extra').fill('[1]');
    await card.getByRole('button', { name: 'Send' }).click();
    await expect.poll(() => card.getByLabel('Extra').getAttribute('aria-invalid')).toBe('true');
    await card.getByLabel('Extra').fill('');
    await card.getByRole('button', { name: 'Send' }).click();
    const shown = () => shared().svc('workflows', 'show', run.id);
    await expect.poll(async () => (await shown()).run.status).toBe('succeeded');
    expect((await shown()).steps[0].output.payload).toMatchObject({ region: 'us', amount: 4 });
  });

  for (const theme of ['light', 'dark'] as const) {
    test(`a form is accessible and fits 390 px in the ${theme} theme`, async () => {
      const { page, problems } = await openCard('form', { theme, width: 390 });
      expect(await axeViolations(page)).toEqual([]);
      const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      expect([overflow > 0, problems]).toEqual([false, []]);
    });
  }

  test('an editor cannot answer for an admin, and reads why', async () => {
    const client = await shared().svc('clients', 'create', 'watcher');
    await shared().svc('roles', 'grant', `client:${client.clientId}`, 'editor');
    await shared().svc('workflows', 'run', 'form');
    const { page, context } = await shared().open('/studio/inbox', { isSignedIn: false });
    onTestFinished(() => context.close());
    await page.getByLabel('Client id').fill(client.clientId);
    await page.getByLabel('Client secret').fill(client.clientSecret);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Refuse' }).first().click();
    await expect
      .poll(() => page.getByRole('alert').first().textContent())
      .toContain('needs the role admin, but you have the role editor');
  });

  test('on the command line, data is checked by field, and `show` names the fields', async () => {
    const run = await shared().svc('workflows', 'run', 'form');
    const { platform } = shared();
    await expect
      .poll(async () => (await shared().svc('workflows', 'show', run.id)).run.status)
      .toBe('waiting');
    const bad = await platform.svc('workflows', 'approve', run.id, 'main.ask', '--data', '{"region":"asia"}');
    expect(bad.exitCode).not.toBe(0);
    expect(bad.envelope.error.details.issues.map(({ path }: { path: string }) => path)).toEqual([
      'data.region',
      'data.amount',
    ]);
    await shared().svc('workflows', 'approve', run.id, 'main.ask', '--data', '{"region":"eu","amount":2}');
    await expect
      .poll(async () => (await shared().svc('workflows', 'show', run.id)).steps[0].output?.data)
      .toEqual({ region: 'eu', amount: 2, weight: 1.5 });
  });
});

test('a schema without properties has one field for JSON, and an approval without a form has none', () => {
  const fields = fieldsOf({ type: 'object' });
  expect(fields.map(({ label, kind }) => [label, kind])).toEqual([['Data as JSON', 'json']]);
  expect(dataOf(fields, { '': '{"a": 1}' })).toEqual({ data: { a: 1 }, issues: [] });
  expect(fieldsOf({})).toEqual([]);
});

test('defaults fill the fields, and empty fields are left out of the data', () => {
  const fields = fieldsOf({
    properties: {
      choice: { enum: ['a', 2, null], default: 2 },
      many: { type: 'array', items: { enum: ['x', 'y'] }, default: ['y'] },
      text: { type: 'string' },
    },
  });
  const values = Object.fromEntries(fields.map((field) => [field.name, firstValue(field)]));
  expect(values).toEqual({ choice: '1', many: [1], text: '' });
  expect(dataOf(fields, values)).toEqual({ data: { choice: 2, many: ['y'] }, issues: [] });
});

import { useState } from 'preact/hooks';
import type { MessageAttempt } from '../../../contracts/message-records.ts';
import { call } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { Field } from '../../ui/field.tsx';
import { JsonRow } from '../../ui/json-row.tsx';
import { Notice } from '../../ui/notice.tsx';
import { parsedJson } from '../../ui/parsed-json.ts';
import { Section } from '../../ui/section.tsx';
import { Status } from '../../ui/status.tsx';
import { Duration } from '../../ui/time.tsx';
import { useAction } from '../../ui/use-action.ts';
import { textFields, useForm } from '../../ui/use-form.ts';
import { EventTypeNames } from '../messages/event-types.tsx';
import { Answer } from './attempts.tsx';

const FIRST = { type: 'webhook.test', data: '{\n  "test": true\n}' };

/** Sends a test message at once and shows the answer. */
export function TestEndpoint({ id }: { id: string }) {
  const [answer, setAnswer] = useState<MessageAttempt>();
  const action = useAction();
  const form = useForm(FIRST, action, async ({ type, data }) => {
    setAnswer(undefined);
    const body = { type: type.trim(), data: parsedJson(data) };
    setAnswer(await call('testEndpoint', { params: { id }, body }));
    outdate('listEndpointAttempts');
    return '';
  });
  const text = textFields(form, 'test');
  return (
    <Section title="Send a test">
      <form class="schema-form" onSubmit={form.onSubmit}>
        <Field {...text('type')} label="Event type of the test" isRequired list="test-types" />
        <EventTypeNames id="test-types" />
        <JsonRow {...text('data')} label="Data of the test as JSON" />
        <div class="actions">
          <button
            type="submit"
            class="primary"
            disabled={action.isBusy || parsedJson(form.values.data) === undefined}
          >
            {action.isBusy ? 'Sending…' : 'Send test'}
          </button>
        </div>
      </form>
      <Notice action={action} />
      {answer && (
        <div role="status">
          <p class="verdict">
            <Status value={answer.outcome} /> after <Duration ms={answer.durationMs} />
          </p>
          <Answer attempt={answer} />
        </div>
      )}
    </Section>
  );
}

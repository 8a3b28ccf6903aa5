import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { type ApiError, call, type Input } from '../../api/call.ts';
import { messageHref } from '../../app/portal-address.ts';
import { CheckField, Field, issueOf } from '../../ui/field.tsx';
import { type FieldIssue, type FieldSchema, fieldsOf, issuesOf } from '../../ui/form-values.ts';
import { JsonRow } from '../../ui/json-row.tsx';
import { Notice } from '../../ui/notice.tsx';
import { parsedJson } from '../../ui/parsed-json.ts';
import { SchemaForm } from '../../ui/schema-form.tsx';
import { useAction } from '../../ui/use-action.ts';
import { useFocusNew } from '../../ui/use-focus-new.ts';
import { EventTypeNames, useEventTypes } from './event-types.tsx';

/** Sends a message to the endpoints of its event type. The schema of a declared type makes a form, others take JSON. */
export default function SendMessage({ onSent }: { onSent: () => void }) {
  const [type, setType] = useState('');
  const [application, setApplication] = useState('');
  const [isJson, setJson] = useState(false);
  const [issues, setIssues] = useState<readonly FieldIssue[]>([]);
  const [sent, setSent] = useState<string>();
  const action = useAction();
  useFocusNew('message', 'message-type');
  const declared = useEventTypes().find((each) => each.type === type.trim());
  const schema = declared?.schema as FieldSchema | null | undefined;
  const hasForm = schema !== null && schema !== undefined && fieldsOf(schema).length > 0;
  const send = (data: unknown): void => {
    if (action.isBusy || type.trim() === '') return;
    setIssues([]);
    action.run(async () => {
      const extra = application.trim() === '' ? {} : { application: application.trim() };
      const body = { type: type.trim(), data, ...extra } as Input<'publishMessage'>['body'];
      const { id, endpoints } = await call('publishMessage', { body }).catch((error: ApiError) => {
        setIssues([...issuesOf(error.details ?? {}, 'data'), ...issuesOf(error.details ?? {}, 'body')]);
        throw error;
      });
      setSent(id);
      onSent();
      return `The message goes to ${endpoints} ${endpoints === 1 ? 'endpoint' : 'endpoints'}.`;
    });
  };
  const buttons = (isComplete: boolean) => (
    <>
      <button type="submit" class="primary" disabled={action.isBusy || type.trim() === '' || !isComplete}>
        Send message
      </button>
      {sent && <a href={messageHref(sent)}>Open the message</a>}
    </>
  );
  return (
    <section class="section" aria-label="Send a message">
      <div class="schema-form">
        <Field
          id="message-type"
          label="Event type of the message"
          value={type}
          onInput={setType}
          issue={issueOf(issues, 'type')}
          isRequired
          placeholder="order.created"
          list="message-types"
          hint={
            declared?.description ??
            'Plugins declare event types in their manifests. Others are accepted too.'
          }
        />
        <EventTypeNames id="message-types" />
        <Field
          id="message-application"
          label="Application of the message"
          value={application}
          onInput={setApplication}
          issue={issueOf(issues, 'application')}
          isOptional
          hint="Only endpoints of this application get it. Empty: the endpoints without an application."
        />
        {hasForm && (
          <CheckField
            id="message-as-json"
            label="Enter the data as JSON"
            isChecked={isJson}
            onChange={setJson}
          />
        )}
      </div>
      {hasForm && !isJson ? (
        <SchemaForm key={type.trim()} id="message-data" schema={schema} issues={issues} onSubmit={send}>
          {buttons(true)}
        </SchemaForm>
      ) : (
        <JsonData issue={issueOf(issues, 'data') ?? issueOf(issues, '')} onSubmit={send} buttons={buttons} />
      )}
      <Notice action={action} />
    </section>
  );
}

interface JsonDataProps {
  issue: string | undefined;
  onSubmit: (data: unknown) => void;
  buttons: (isComplete: boolean) => ComponentChildren;
}

function JsonData({ issue, onSubmit, buttons }: JsonDataProps) {
  const [text, setText] = useState('{}');
  const data = parsedJson(text);
  return (
    <form
      class="schema-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (data !== undefined) onSubmit(data);
      }}
    >
      <JsonRow id="message-json" label="Data as JSON" value={text} onInput={setText} issue={issue} />
      <div class="actions">{buttons(data !== undefined)}</div>
    </form>
  );
}

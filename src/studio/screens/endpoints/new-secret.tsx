import { useState } from 'preact/hooks';
import { Command } from '../../ui/command.tsx';
import { Select } from '../../ui/field.tsx';
import { Preformatted } from '../../ui/json.tsx';
import { Section } from '../../ui/section.tsx';

const SNIPPETS: Record<string, string> = {
  JavaScript: `import { Webhook } from 'standardwebhooks'; // npm install standardwebhooks

// body: the request body as it arrived, before it is parsed
const { type, timestamp, data } = new Webhook(process.env.WEBHOOK_SECRET).verify(body, request.headers);`,
  Python: `from standardwebhooks import Webhook  # pip install standardwebhooks

# body: the request body as it arrived, before it is parsed
message = Webhook(os.environ["WEBHOOK_SECRET"]).verify(body, request.headers)`,
  Go: `import standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

// body: the request body as it arrived, before it is parsed
webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
err = webhook.Verify(body, request.Header)`,
};
const LANGUAGES = Object.keys(SNIPPETS).map((name) => [name, name] as const);

/** The secret of an endpoint, which is shown this once, and how its receiver verifies messages. */
export function NewSecret({ secret, url, onClose }: { secret: string; url: string; onClose: () => void }) {
  const [language, setLanguage] = useState('JavaScript');
  return (
    <Section
      title="Secret of the endpoint"
      actions={
        <button type="button" onClick={onClose}>
          I have stored it
        </button>
      }
    >
      <p>
        Copy it now: it is not shown again. Store it as <code>WEBHOOK_SECRET</code> where {url} is served.
      </p>
      <p>
        <Command text={secret} />
      </p>
      <p>
        The receiver must verify the signature of each message. Messages have the headers{' '}
        <code>webhook-id</code>, <code>webhook-timestamp</code> and <code>webhook-signature</code> of Standard
        Webhooks:
      </p>
      <Select
        id="snippet-language"
        label="Language"
        value={language}
        options={LANGUAGES}
        onInput={setLanguage}
      />
      <Preformatted label={`Verification in ${language}`} text={SNIPPETS[language]!} />
    </Section>
  );
}

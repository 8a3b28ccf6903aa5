import { Command } from '../../ui/command.tsx';
import { Section } from '../../ui/section.tsx';

export interface ShownSecret {
  name: string;
  url: string;
  /** Empty if there is none, or if it was entered. */
  secret: string;
}

/** A new URL with its secret. Both are shown this once. */
export function NewSourceSecret({ shown: { name, url, secret } }: { shown: ShownSecret }) {
  return (
    <Section title={`URL of ${name}`}>
      <p>Copy it now. A secret, or a token in the URL, is not shown again.</p>
      <p>
        URL: <Command text={url} />
      </p>
      {secret !== '' && (
        <p>
          Secret: <Command text={secret} />
        </p>
      )}
    </Section>
  );
}

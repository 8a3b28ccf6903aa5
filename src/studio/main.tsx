import { render } from 'preact';
import { App } from './app/app.tsx';
import { applyTheme, storedTheme } from './app/theme.ts';
import './styles/base.css';

applyTheme(storedTheme());
render(<App />, document.getElementById('app')!);

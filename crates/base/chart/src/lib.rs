//! Charts as SVG: lines, dots, steps and bars over linear or logarithmic axes; one, or several below each other.

use std::io;
use std::ops::Range;
use std::path::Path;

use pares_text::grouped;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (920, 480);
const FONT: &str = "sans-serif";
/// Lines nearer than this share of the height hide each other.
const NEAR: f64 = 0.01;
const PALETTE: [RGBColor; 5] = [
    RGBColor(31, 98, 182),
    RGBColor(214, 96, 20),
    RGBColor(34, 139, 84),
    RGBColor(150, 60, 160),
    RGBColor(120, 120, 120),
];

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm; values are above 0.
    Log,
}

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What, and in which unit.
    pub label: &'static str,
    /// How.
    pub scale: Scale,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look {
    /// Points joined by a line.
    Line,
    /// Crosses: what a paper reports.
    Crosses,
    /// A line without points, level from one value to the next.
    Steps,
    /// Bars from 0, this wide, moved by this much, in units of x.
    Bars {
        /// Width.
        width: f64,
        /// Moved right.
        shift: f64,
    },
}

/// One series.
#[derive(Clone, Debug)]
pub struct Series {
    /// As in the legend.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub look: Look,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Instants marked by a line, with what happened; an empty text marks without saying.
    pub marks: Vec<(f64, String)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Canvas<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Ruler, Ruler>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(1e-9).log10(),
        }
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Self::Linear => place,
            Self::Log => 10_f64.powf(place),
        }
    }

    /// Values to name on the axis; the first and last bound it.
    fn ticks(self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (least, most) = (least.min(value), most.max(value));
        }
        match self {
            _ if least > most => vec![0.0, 1.0],
            Self::Linear => linear_ticks(least.min(0.0), most.max(least.min(0.0) + 1e-9)),
            Self::Log => log_ticks(least.max(1e-3), most.max(1e-3)),
        }
    }
}

fn linear_ticks(least: f64, most: f64) -> Vec<f64> {
    let rough = (most - least) / 8.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= rough);
    let step = step.expect("ten times the power of ten below is above");
    let (first, last) = ((least / step).floor() as i64, (most / step).ceil() as i64);
    (first..=last.max(first + 1)).map(|n| n as f64 * step).collect()
}

/// 1, 2 and 5 of each power of ten, or the powers alone if those are many.
fn log_ticks(least: f64, most: f64) -> Vec<f64> {
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let fine: Vec<f64> = decades.flat_map(|d| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(d))).collect();
    let first = fine.iter().rposition(|&tick| tick <= least * 1.001).unwrap_or(0);
    let last = fine.iter().position(|&tick| tick >= most * 0.999).unwrap_or(fine.len() - 1).max(first + 1);
    let ticks = fine[first..=last.min(fine.len() - 1)].to_vec();
    if ticks.len() <= 10 {
        return ticks;
    }
    let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
    (low.log10().floor() as i32..=high.log10().ceil() as i32).map(|d| 10_f64.powi(d)).collect()
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 10.0 || size.fract() < 1e-9 => {
            let sign = if value < -0.5 { "-" } else { "" };
            format!("{sign}{}", grouped(size.round() as u64))
        }
        size if size >= 0.1 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Writes charts to `path`, below each other.
///
/// # Errors
/// If the file cannot be written.
pub fn save(charts: &[&Chart], path: &Path) -> io::Result<()> {
    let draw = || -> Drawn {
        let size = (SIZE.0, SIZE.1 * charts.len().max(1) as u32);
        let root = SVGBackend::new(path, size).into_drawing_area();
        root.fill(&WHITE)?;
        for (chart, area) in charts.iter().zip(root.split_evenly((charts.len().max(1), 1))) {
            chart.draw(&area)?;
        }
        root.present()
    };
    draw().map_err(|error| io::Error::other(error.to_string()))
}

impl Chart {
    /// Writes the chart to `path`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        save(&[self], path)
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let marked = self.marks.iter().map(|(x, _)| *x);
        let x = Ruler::tight(self.x.scale, all().map(|p| p.0).chain(marked));
        let y = Ruler::roomy(self.y.scale, all().map(|p| p.1), self.series.len());
        let height = y.range();
        let mut canvas = ChartBuilder::on(root)
            .caption(&self.title, (FONT, 24))
            .margin(14)
            .margin_right(36)
            .x_label_area_size(52)
            .y_label_area_size(84)
            .build_cartesian_2d(x, y)?;
        canvas
            .configure_mesh()
            .x_desc(self.x.label)
            .y_desc(self.y.label)
            .label_style((FONT, 16))
            .axis_desc_style((FONT, 18))
            .bold_line_style(RGBColor(225, 225, 225))
            .x_label_formatter(&|place| number(self.x.scale.value(*place)))
            .y_label_formatter(&|place| number(self.y.scale.value(*place)))
            .draw()?;
        self.draw_marks(&mut canvas, &height)?;
        let widths = self.widths(&height);
        for ((series, width), colour) in self.series.iter().zip(widths).zip(PALETTE.iter().cycle()) {
            self.draw_series(&mut canvas, series, colour.stroke_width(width))?;
        }
        canvas
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .label_font((FONT, 16))
            .draw()?;
        Ok(())
    }

    /// How wide each series' line is. One that another is drawn over is wider than that one: it shows on both sides of it.
    fn widths(&self, y: &Range<f64>) -> Vec<u32> {
        let near = (y.end - y.start) * NEAR;
        let height = |&(x, y): &(f64, f64)| (x, self.y.scale.place(y));
        let lines: Vec<Vec<(f64, f64)>> =
            self.series.iter().map(|series| series.points.iter().map(height).collect()).collect();
        let mut widths = vec![2; lines.len()];
        for under in (0..lines.len()).rev() {
            let over = (under + 1..lines.len()).filter(|&over| runs_along(&lines[under], &lines[over], near));
            widths[under] = over.map(|over| widths[over] + 3).max().unwrap_or(2);
        }
        widths
    }

    /// A line for each mark, and its words beside it, where there is room.
    fn draw_marks(&self, canvas: &mut Canvas<'_>, y: &Range<f64>) -> Drawn {
        let style = TextStyle::from((FONT, 16).into_font()).color(&RGBColor(90, 90, 90));
        let edge = self.series.iter().flat_map(|series| &series.points).map(|p| p.0).fold(0.0, f64::max);
        for (at, text) in &self.marks {
            let x = self.x.scale.place(*at);
            let line = vec![(x, y.start), (x, y.end)];
            canvas.draw_series(std::iter::once(PathElement::new(line, RGBColor(170, 170, 170))))?;
            let (side, apart) = if *at > edge * 0.8 { (HPos::Right, -6) } else { (HPos::Left, 6) };
            let style = style.pos(Pos::new(side, VPos::Top));
            let place = (x, y.start + (y.end - y.start) * 0.3);
            let label = EmptyElement::at(place) + Text::new(text.clone(), (apart, 0), style);
            canvas.draw_series((!text.is_empty()).then_some(label))?;
        }
        Ok(())
    }

    fn draw_series(&self, canvas: &mut Canvas<'_>, series: &Series, line: ShapeStyle) -> Drawn {
        let place = |&(x, y): &(f64, f64)| (self.x.scale.place(x), self.y.scale.place(y));
        let points: Vec<(f64, f64)> = series.points.iter().map(place).collect();
        let label = match series.look {
            Look::Line => {
                let dot = 2 + line.stroke_width / 2;
                canvas.draw_series(points.iter().map(|&p| Circle::new(p, dot, line.filled())))?;
                canvas.draw_series(LineSeries::new(points, line))?
            }
            Look::Crosses => {
                canvas.draw_series(points.iter().map(|&p| Cross::new(p, 6, BLACK.stroke_width(2))))?
            }
            Look::Steps => canvas.draw_series(LineSeries::new(steps(&points), line))?,
            Look::Bars { width, shift } => {
                let bar = |&(x, y): &(f64, f64)| {
                    Rectangle::new([(x + shift, 0.0), (x + shift + width, y)], line.filled())
                };
                canvas.draw_series(points.iter().map(bar))?
            }
        };
        label.label(&series.name);
        match series.look {
            Look::Crosses => label.legend(|(x, y)| Cross::new((x + 10, y), 5, BLACK.stroke_width(2))),
            _ => label.legend(move |(x, y)| Rectangle::new([(x, y - 2), (x + 20, y + 2)], line.filled())),
        };
        Ok(())
    }
}

/// Whether two lines are as one from any point to the next.
fn runs_along(one: &[(f64, f64)], other: &[(f64, f64)], near: f64) -> bool {
    let meets = |(x, y): &(f64, f64)| {
        other.iter().any(|(other_x, other_y)| x == other_x && (y - other_y).abs() <= near)
    };
    one.windows(2).any(|pair| pair.iter().all(meets))
}

/// An axis with its ticks, as places.
#[derive(Clone)]
struct Ruler {
    ticks: Vec<f64>,
    range: Range<f64>,
}

impl Ruler {
    /// Ends where the values do.
    fn tight(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let Self { mut ticks, range } = Self::between_ticks(scale, values.iter().copied());
        let least = values.iter().map(|&value| scale.place(value)).fold(range.end, f64::min);
        let most = values.iter().map(|&value| scale.place(value)).fold(range.start, f64::max);
        if least >= most {
            return Self { ticks, range };
        }
        let start = if scale == Scale::Linear { least.min(0.0) } else { least };
        ticks.retain(|tick| (start - 1e-9..=most + 1e-9).contains(tick));
        Self { ticks, range: start..most }
    }

    /// Ends with a tick, high enough for a legend above the values.
    fn roomy(scale: Scale, values: impl Iterator<Item = f64>, legend_lines: usize) -> Self {
        let share = 0.06 + 0.05 * legend_lines as f64;
        let values: Vec<f64> = values.collect();
        let Self { range, .. } = Self::between_ticks(scale, values.iter().copied());
        let most = values.iter().map(|&value| scale.place(value)).fold(range.start, f64::max);
        let top = range.start + (most - range.start) / (1.0 - share);
        Self::between_ticks(scale, values.into_iter().chain([scale.value(top)]))
    }

    fn between_ticks(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let ticks: Vec<f64> = scale.ticks(values).into_iter().map(|tick| scale.place(tick)).collect();
        let range = ticks[0]..ticks[ticks.len() - 1];
        Self { ticks, range }
    }
}

impl Ranged for Ruler {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let Range { start, end } = self.range();
        from + ((value - start) / (end - start) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// Level to the next point, then up or down to it.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = points.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
    corners.chain(points.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_bound_the_values_and_are_round() {
        assert_eq!(linear_ticks(0.0, 7.3), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(linear_ticks(-3.0, 30.0), [-5.0, 0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
        assert_eq!(log_ticks(30.0, 180.0), [20.0, 50.0, 100.0, 200.0]);
        assert_eq!(log_ticks(0.9, 90_000.0), [0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
    }

    fn chart(lines: &[[f64; 4]]) -> Chart {
        let points = |line: &[f64; 4]| (0..).map(f64::from).zip(*line).collect();
        let series = |line| Series { name: "a line".into(), points: points(line), look: Look::Steps };
        Chart {
            title: "a chart".into(),
            x: Axis { label: "x", scale: Scale::Linear },
            y: Axis { label: "y", scale: Scale::Linear },
            series: lines.iter().map(series).collect(),
            marks: vec![(1.0, "early".into()), (3.0, "late".into())],
        }
    }

    #[test]
    fn a_line_shows_on_both_sides_of_one_that_is_drawn_over_it() {
        let level = [5.0, 5.0, 5.0, 5.0];
        let apart = chart(&[level, [9.0, 9.0, 5.0, 1.0], [1.0, 1.0, 1.0, 9.0]]);
        assert_eq!(apart.widths(&(0.0..10.0)), [2, 2, 2], "lines that only cross");
        let alike = chart(&[[5.0, 5.0, 0.0, 0.0], level, [5.05, 5.0, 5.0, 5.0]]);
        assert_eq!(alike.widths(&(0.0..10.0)), [8, 5, 2]);
    }

    #[test]
    fn chart_mark_label_stays_beside_line_and_inside_picture() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("chart.svg");
        chart(&[[1.0, 2.0, 3.0, 4.0]]).save(&path).unwrap();
        let drawn = std::fs::read_to_string(path).unwrap();
        let anchor = |word: &str| {
            let text = drawn.split("<text ").find(|text| text.contains(&format!("\n{word}\n"))).expect(word);
            text.split("text-anchor=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        assert_eq!((anchor("early").as_str(), anchor("late").as_str()), ("start", "end"));
    }

    #[test]
    fn numbers_on_axes_are_short() {
        assert_eq!([0.0, 0.5, 2.0, 1e5, -20.0].map(number), ["0", "0.5", "2", "100,000", "-20"]);
    }
}
